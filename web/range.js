// Filters in files that stay where they are: on a web server, read by HTTP Range, or in a
// Blob too large to load. Opening reads the three pages of the head; a lookup reads the
// block that the key falls on.

import { bodyOffset, decodeHead, fits, FormatError } from './format.js';
import { bytesOf } from './hash.js';
import { describe, Head, KeyList } from './kinds.js';
import { out, toBigInt } from './words.js';

// SourceError: the file cannot be read. code is one of
//   http     the server answered with an error; status has its number
//   range    the server does not serve ranges, or served another one
//   changed  the file is no longer the one that was opened
//   short    fewer bytes came than were announced
export class SourceError extends Error {
  constructor(message, code, status = 0) {
    super(message);
    this.name = 'SourceError';
    this.code = code;
    this.status = status;
  }
}

// A Source counts what was read from it.
class Source {
  constructor() {
    this.size = null; // bytes; null if unknown
    this.requests = 0;
    this.bytesRead = 0;
  }
}

class BlobSource extends Source {
  constructor(blob) {
    super();
    this.blob = blob;
    this.size = blob.size;
  }

  async read(at, length, signal) {
    signal?.throwIfAborted();
    const bytes = new Uint8Array(await this.blob.slice(at, at + length).arrayBuffer());
    this.requests++;
    this.bytesRead += bytes.length;
    return bytes;
  }
}

class URLSource extends Source {
  constructor(url, { fetch: fetcher, headers, credentials }) {
    super();
    this.url = String(url);
    this.fetch = fetcher ?? ((...request) => fetch(...request));
    this.headers = headers ?? {};
    this.credentials = credentials;
    this.tag = null; // of the file, as its first answer had it
  }

  // read returns the bytes from at on: length of them, or fewer at the file's end.
  async read(at, length, signal) {
    const stop = new AbortController();
    const abort = () => stop.abort(signal.reason);
    signal?.throwIfAborted();
    signal?.addEventListener('abort', abort, { once: true });
    try {
      const request = { headers: { ...this.headers, Range: `bytes=${at}-${at + length - 1}` }, signal: stop.signal, cache: 'no-store' };
      if (this.credentials !== undefined) {
        request.credentials = this.credentials;
      }
      this.requests++;
      const response = await this.fetch(this.url, request);
      try {
        return await this.take(response, at, length);
      } catch (error) {
        stop.abort(); // whatever else the server sends
        throw error;
      }
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  // take checks an answer before it reads it.
  async take(response, at, length) {
    const { status } = response;
    if (status === 200 && at === 0 && response.headers.get('Content-Length') === '0') {
      throw new FormatError('not a filter file: it is too short');
    }
    if (status === 200) {
      throw new SourceError(`${this.url}: the server ignores Range: it sends the whole file`, 'range', status);
    }
    if (status === 416) {
      throw this.tag === null
        ? new FormatError('not a filter file: it is too short')
        : new SourceError(`${this.url}: the file has become shorter since it was opened`, 'changed', status);
    }
    if (status !== 206) {
      throw new SourceError(`${this.url}: the server answered with status ${status}`, 'http', status);
    }
    const range = response.headers.get('Content-Range'); // null across origins, unless exposed
    let want = length;
    if (range !== null) {
      const [, first, last, total] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(range) ?? [];
      if (Number(first) !== at || Number(last) > at + length - 1 || Number(last) < at) {
        throw new SourceError(`${this.url}: the server sent another range: "${range.slice(0, 100)}"`, 'range', status);
      }
      want = Number(last) - at + 1;
      this.sameFile(response, total === '*' ? null : Number(total));
    } else {
      this.sameFile(response, null);
    }
    const bytes = await this.body(response, length);
    if (range !== null && bytes.length !== want) {
      throw new SourceError(`${this.url}: ${bytes.length} bytes came where ${want} were announced`, 'short', status);
    }
    return bytes;
  }

  // sameFile compares what identifies a version of the file with the first answer's.
  sameFile(response, total) {
    const tag = [response.headers.get('ETag'), response.headers.get('Last-Modified')].join(' ');
    if (this.tag === null) {
      this.tag = tag;
      this.size = total;
    } else if (tag !== this.tag || (total !== null && this.size !== null && total !== this.size)) {
      throw new SourceError(`${this.url}: the file has changed since it was opened: open it again`, 'changed', response.status);
    }
  }

  // body reads at most length bytes, however many come, into memory that grows with them.
  async body(response, length) {
    const reader = response.body.getReader(), parts = [];
    let filled = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        break;
      }
      this.bytesRead += value.length;
      filled += value.length;
      if (filled > length) {
        throw new SourceError(`${this.url}: more bytes came than were asked for`, 'range', response.status);
      }
      parts.push(value);
    }
    if (parts.length === 1) {
      return parts[0];
    }
    const whole = new Uint8Array(filled);
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }
}

const together = 6; // requests at a time, as browsers allow one server over HTTP/1.1

// A RemoteFilter answers like a Filter, later. The checksums in the file cover a MiB of
// bits each, so what a lookup reads is not verified; the head is.
export class RemoteFilter extends Head {
  constructor(source, head, options) {
    super(head, options);
    this.source = source;
    this.signal = options.signal;
    this.sections = head.state.sections;
    this.list = null;
  }

  get requests() {
    return this.source.requests;
  }

  get bytesRead() {
    return this.source.bytesRead;
  }

  // has reports whether a key is probably in the filter.
  async has(key, { signal } = {}) {
    return this.look(key, signal, new Map());
  }

  // hasMany returns an answer for each key. Keys on the same block share its request.
  async hasMany(keys, { signal } = {}) {
    const all = Array.from(keys), answers = new Array(all.length), blocks = new Map();
    let next = 0;
    const work = async () => {
      while (next < all.length) {
        const i = next++;
        answers[i] = await this.look(all[i], signal, blocks);
      }
    };
    await Promise.all(Array.from({ length: Math.min(together, all.length) }, work));
    return answers;
  }

  // where shows how a key is answered. It reads every layer.
  async where(key, { signal } = {}) {
    const places = new Set();
    const nothing = [new Uint8Array(2048), 0];
    describe(this, key, (at) => {
      places.add(at);
      return nothing;
    }, null);
    const blocks = new Map(), found = new Map();
    for (const at of places) {
      const layer = this.layers.find(({ offset, length }) => at >= offset && at < offset + length);
      found.set(at, await this.block(at, layer.blockBytes || 1, signal, blocks));
    }
    const list = this.kind === 'exceptions' ? await this.exceptions(signal) : null;
    return describe(this, key, (at) => [found.get(at), 0], list);
  }

  async look(key, signal, blocks) {
    this.hashKey(key);
    const hash = this.hasher === null ? null : toBigInt(), low = out[0], high = out[1];
    const restore = () => { // other lookups may have run meanwhile
      out[0] = low;
      out[1] = high;
    };
    if (this.kind === 'classic') {
      return this.lookAnywhere(this.layers[0].positions(hash).bits, signal, blocks);
    }
    for (const layer of this.live()) {
      restore();
      if (this.kind === 'cuckoo') {
        if (await this.inBuckets(layer, signal, blocks)) {
          return true;
        }
        continue;
      }
      const at = layer.offset + layer.block() * layer.blockBytes;
      const bytes = await this.block(at, layer.blockBytes, signal, blocks);
      restore();
      if (layer.test(bytes, 0)) {
        return this.kind !== 'exceptions' || !(await this.exceptions(signal)).has(bytesOf(key));
      }
    }
    return false;
  }

  // inBuckets reads a bucket of a layer, and the other one unless the first has the key's
  // fingerprint.
  async inBuckets(layer, signal, blocks) {
    const fingerprint = layer.fingerprint();
    for (const bucket of new Set([layer.one(), layer.other(fingerprint)])) {
      const bytes = await this.block(layer.offset + bucket * layer.k, layer.k, signal, blocks);
      if (layer.within(bytes, 0, fingerprint)) {
        return true;
      }
    }
    return false;
  }

  // lookAnywhere reads a byte for each bit, until one is clear.
  async lookAnywhere(bits, signal, blocks) {
    const [layer] = this.layers;
    for (const bit of bits) {
      const bytes = await this.block(layer.placeOf(null, bit), 1, signal, blocks);
      if (!layer.read(bytes, 0, bit).set) {
        return false;
      }
    }
    return true;
  }

  // block reads bytes, once for all lookups that share the map.
  block(at, length, signal, blocks) {
    let reading = blocks.get(at);
    if (reading === undefined) {
      reading = this.exactly(at, length, signal ?? this.signal);
      blocks.set(at, reading);
    }
    return reading;
  }

  async exactly(at, length, signal) {
    const bytes = await this.source.read(at, length, signal);
    if (bytes.length !== length) {
      throw new SourceError(`the file ends within the ${length} bytes at ${at}`, 'short');
    }
    return bytes;
  }

  // exceptions reads the list, once: the first time that the bits find a key.
  async exceptions(signal) {
    if (this.list === null) {
      const { offset, length, blocks } = this.sections[1];
      this.list = new KeyList(length === 0 ? new Uint8Array(0) : await this.exactly(offset, length, signal ?? this.signal), blocks);
    }
    return this.list;
  }
}

// openSource reads the head of a file. A writer may be changing it: if anything is wrong
// with the head, it is read again, until the same bytes came twice.
async function openSource(source, options) {
  let before = null;
  for (;;) {
    const bytes = await source.read(0, bodyOffset, options.signal);
    try {
      const head = decodeHead(bytes);
      if (source.size !== null) {
        fits(head.state, source.size);
        if (head.damaged !== null && source.size !== head.state.fileBytes) {
          throw head.damaged;
        }
      }
      return new RemoteFilter(source, head, options);
    } catch (error) {
      const same = before !== null && bytes.length === before.length && bytes.every((byte, i) => byte === before[i]);
      if (!(error instanceof FormatError) || error.code !== 'checksum' || same) {
        throw error;
      }
      before = bytes;
    }
  }
}

// openURL opens the file at a URL for lookups by HTTP Range.
export const openURL = (url, options = {}) => openSource(new URLSource(url, options), options);

// openBlob opens a Blob or File for lookups that read what they need.
export const openBlob = (blob, options = {}) => openSource(new BlobSource(blob), options);
