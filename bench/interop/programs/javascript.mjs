// The JavaScript filters behind the protocol of ../program.go:
//
//	node javascript.mjs NODE_MODULES PACKAGE
//
// PACKAGE is a directory of NODE_MODULES. Each process runs one package.

import fs from "node:fs";
import { createRequire } from "node:module";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const [modules, name] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const { version } = JSON.parse(fs.readFileSync(`${modules}/${name}/package.json`));

// How each package makes, writes and reads a filter of m bits and k probes, or for n
// keys at rate p.
const packages = {
  // bloomfilter.js since 1.0 has its own format, which includes m and k.
  bloomfilter: async () => {
    const { BloomFilter } = await import(pathToFileURL(`${modules}/${name}/bloomfilter.js`));
    return {
      make: ({ variant, n, p, m, k }) => (variant === "target" ? BloomFilter.withTargetError(n, p) : new BloomFilter(m, k)),
      write: (f) => JSON.stringify(f.toJSON()),
      read: (text) => BloomFilter.fromJSON(text),
      has: (f, key) => f.test(key),
    };
  },
  // Up to 0.0.18, its README said to store the buckets as an array, and k separately.
  bloomfilter18: async () => {
    const { BloomFilter } = require(`${modules}/${name}/bloomfilter.js`);
    return {
      make: ({ m, k }) => new BloomFilter(m, k),
      write: (f) => JSON.stringify([].slice.call(f.buckets)),
      read: (text, { k }) => new BloomFilter(JSON.parse(text), k),
      has: (f, key) => f.test(key),
    };
  },
  "bloom-filters": async () => {
    const { BloomFilter } = require(`${modules}/${name}`);
    return {
      make: ({ variant, n, p, m, k }) => {
        const f = variant === "create" ? BloomFilter.create(n, p) : new BloomFilter(m, k);
        if (variant.startsWith("seed-")) f.seed = Number(variant.slice(5));
        return f;
      },
      write: (f) => JSON.stringify(f.saveAsJSON()),
      read: (text) => BloomFilter.fromJSON(JSON.parse(text)),
      has: (f, key) => f.has(key),
    };
  },
};

function keys(path) {
  const bytes = fs.readFileSync(path);
  const found = [];
  for (let at = 4; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    found.push(bytes.toString("utf8", at + 4, at + 4 + length));
    at += 4 + length;
  }
  return found;
}

const library = await packages[name]();
console.log(`${name.replace(/18$/, "")} ${version}, Node ${process.versions.node}`);
for await (const line of readline.createInterface({ input: process.stdin })) {
  const [verb, dir, variant, n, p, m, k] = line.split("\t");
  const job = { variant, n: +n, p: +p, m: +m, k: +k };
  try {
    let filter;
    if (verb === "make") {
      filter = library.make(job);
      for (const key of keys(`${dir}/keys`)) filter.add(key);
      fs.writeFileSync(`${dir}/filter`, library.write(filter));
    } else {
      filter = library.read(fs.readFileSync(`${dir}/filter`, "utf8"), job);
    }
    fs.writeFileSync(`${dir}/answers`, keys(`${dir}/probes`).map((key) => (library.has(filter, key) ? "1" : "0")).join(""));
    console.log("ok");
  } catch (error) {
    console.log(String(error).replaceAll("\n", " "));
  }
}
