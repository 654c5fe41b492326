// Tests node-redis and its calls for Bloom and cuckoo filters against a running server:
//
//	npm install redis@6
//	node noderedis.mjs [redis://127.0.0.1:6380]
//
// It runs with RESP2 and with RESP3, prints a line for each, and fails at the first
// reply that differs from RedisBloom's. It deletes the keys that it creates.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

// Load the package from the current directory, where it was installed.
const { createClient, RESP_TYPES } = createRequire(`${process.cwd()}/`)("redis");
const url = process.argv[2] ?? "redis://127.0.0.1:6380";

for (const RESP of [2, 3]) {
  const client = createClient({ url, RESP });
  client.on("error", (error) => { throw error; });
  await client.connect();
  const key = `noderedis:${process.pid}`, copy = `${key}:copy`;
  const bf = client.bf;

  assert.equal(await bf.reserve(key, 0.001, 2000, { EXPANSION: 3 }), "OK");
  assert.equal(await bf.add(key, "a"), true);
  assert.equal(await bf.exists(key, "a"), true);
  assert.deepEqual(await bf.mAdd(key, ["a", "b"]), [false, true]);
  assert.deepEqual(await bf.mExists(key, ["b", "z"]), [true, false]);
  assert.deepEqual(await bf.insert(key, ["b", "c"], { NOCREATE: true }), [false, true]);
  assert.equal(await bf.card(key), 3);
  const info = await bf.info(key);
  assert.equal(info["Capacity"], 2000);
  assert.equal(info["Size"], 4056);
  assert.equal(info["Number of items inserted"], 3);
  assert.equal(info["Expansion rate"], 3);

  // A chunk is binary: decoding it as text would corrupt it.
  const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).bf;
  for (let iterator = 0; ; ) {
    const dump = await binary.scanDump(key, iterator);
    if (Number(dump.iterator) === 0) break;
    iterator = Number(dump.iterator);
    assert.equal(await bf.loadChunk(copy, iterator, dump.chunk), "OK");
  }
  assert.equal(await bf.exists(copy, "b"), true);

  const [isNew, found] = await client.multi().bf.add(key, "tx").bf.exists(key, "tx").exec();
  assert.deepEqual([isNew, found], [true, true]);
  await assert.rejects(bf.reserve(key, 0.01, 100), /item exists/);
  assert.equal(await client.type(key), "MBbloom--");
  assert.equal(await client.del([key, copy]), 2);

  const cf = client.cf;
  assert.equal(await cf.reserve(key, 1000, { BUCKETSIZE: 4, MAXITERATIONS: 30, EXPANSION: 2 }), "OK");
  assert.equal(await cf.add(key, "a"), true);
  assert.equal(await cf.add(key, "a"), true);
  assert.equal(await cf.addNX(key, "a"), false);
  assert.equal(await cf.count(key, "a"), 2);
  assert.equal(await cf.del(key, "a"), true);
  assert.equal(await cf.del(key, "z"), false);
  assert.equal(await cf.exists(key, "a"), true);
  assert.equal(await cf.exists(key, "z"), false);
  assert.deepEqual(await cf.insert(key, ["b", "c"], { CAPACITY: 100, NOCREATE: true }), [true, true]);
  assert.deepEqual((await cf.insertNX(key, ["c", "d"])).map(Number), [0, 1]);
  const about = await cf.info(key);
  assert.equal(about["Size"], 1080);
  assert.equal(about["Number of buckets"], 256);
  assert.equal(about["Number of filters"], 1);
  assert.equal(about["Number of items inserted"], 4);
  assert.equal(about["Number of items deleted"], 1);
  assert.equal(about["Bucket size"], 4);
  assert.equal(about["Expansion rate"], 2);
  assert.equal(about["Max iterations"], 30);
  const slots = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).cf;
  for (let iterator = 0; ; ) {
    const dump = await slots.scanDump(key, iterator);
    if (Number(dump.iterator) === 0) break;
    iterator = Number(dump.iterator);
    assert.equal(await cf.loadChunk(copy, iterator, dump.chunk), "OK");
  }
  assert.equal(await cf.exists(copy, "d"), true);
  await assert.rejects(cf.reserve(key, 100), /item exists/);
  await assert.rejects(cf.del(`${key}:none`, "a"), /Not found/);
  assert.equal(await client.type(key), "MBbloomCF");
  assert.equal(await client.del([key, copy]), 2);
  client.destroy();
  console.log(`RESP${RESP}: ok`);
}
