// Types of bloomery.js. Keys are strings, meaning their UTF-8, or bytes.

export type Key = string | Uint8Array;

export type Kind = 'filter' | 'splitblock' | 'classic' | 'counting' | 'scalable' | 'window' | 'exceptions' | 'cuckoo' | 'scalablecounting';

export interface OpenOptions {
  /** The secret of a keyed filter, 16 bytes; setSecret can give it later. */
  secret?: Uint8Array;
  /** The clock of a window, in milliseconds since 1970; Date.now by default. */
  now?: () => number;
  /** false leaves out the checksums of the bits; the head is always checked. */
  verify?: boolean;
  /** true leaves a Blob where it is: open then returns a RemoteFilter. */
  ranges?: boolean;
}

export interface RangeOptions extends Omit<OpenOptions, 'verify' | 'ranges'> {
  /** Aborts opening and, unless a lookup has a signal of its own, all lookups. */
  signal?: AbortSignal;
  /** Instead of the global fetch. */
  fetch?: typeof fetch;
  /** More request headers. */
  headers?: Record<string, string>;
  credentials?: RequestCredentials;
}

export interface Lookup {
  signal?: AbortSignal;
}

/** A layer of a filter: one section of its file. Most kinds have one. */
export interface Layer {
  readonly offset: number;
  readonly length: number;
  /** Blocks, or buckets. */
  readonly blocks: number;
  /** Of a Cuckoo, the slots of a bucket. */
  readonly k: number;
  /** Bits, or counters; of a Cuckoo, eight for each slot. */
  readonly m: number;
  /** Planned keys and rate; 0 in kinds that have one layer. */
  readonly n: number;
  readonly p: number;
  readonly added: bigint;
  /** When a window's generation began, in nanoseconds since 1970. */
  readonly start: bigint;
}

/**
 * A bit of a key, or a slot where a Cuckoo may have it. position is its number in the layer;
 * line and lane, or bucket and slot, as the layout has them.
 */
export interface Bit {
  position: number;
  bucket?: number;
  slot?: number;
  line?: number;
  lane?: number;
  bit?: number;
}

export interface FoundBit extends Bit {
  /** The byte of the file, and the bit's mask in it. */
  byte: number;
  mask: number;
  /** Of a slot: it has the key's fingerprint. */
  set: boolean;
  /** What is in the slot, in a Cuckoo; 0 if it is empty. */
  value?: number;
  /** The counter, in a Counting or a ScalableCounting: 0 to 15. */
  count?: number;
}

export interface PairedPositions {
  block: number;
  lines: [number, number];
  /** The rows of the table that choose the lanes of each line. */
  rows: [number, number];
  p: bigint;
  q: bigint;
  g: bigint;
  x: bigint;
  s: number;
  bits: Bit[];
}

export interface LayerPlace extends Partial<Omit<PairedPositions, 'bits'>> {
  /** The number of the layer, oldest first. */
  layer: number;
  /** Whether it counts: of a window, whether its generation is not forgotten. */
  live: boolean;
  step?: bigint;
  /** In a Cuckoo: 1 to 255, and the numbers of the buckets that may have it. */
  fingerprint?: number;
  buckets?: [number, number];
  bits: FoundBit[];
  /** All bits are set, or any slot of a Cuckoo has the fingerprint. */
  found: boolean;
}

export interface Place {
  /** null if the scheme of a Classic has no single hash. */
  hash: bigint | null;
  layers: LayerPlace[];
  /** The bits are set, but the key is an exception. */
  excepted: boolean;
  found: boolean;
}

declare class Head {
  readonly kind: Kind;
  /** Keys planned; of a kind with layers, in its first one. */
  readonly n: number;
  /** Rate planned. */
  readonly p: number;
  /** Adds that were answered "new"; of a Cuckoo its fingerprints, of a ScalableCounting adds less removals. */
  readonly added: number;
  /** m: bits of all layers, or counters. */
  readonly bits: number;
  /** Bits that a key sets, in the newest layer. */
  readonly k: number;
  readonly fileBytes: number;
  readonly metadata: Readonly<Record<string, string>>;
  /** key is the seed or, of siphash, the fingerprint of the secret. */
  readonly hash: { readonly name: 'scheme' | 'xxh3' | 'siphash' | 'xxh64' | 'murmur64a'; readonly key: bigint };
  /** The scheme of a Classic, otherwise ''. */
  readonly scheme: string;
  /** Oldest first. */
  readonly layers: readonly Layer[];
  /** The filter is keyed, and lookups throw a SecretError until setSecret. */
  readonly needsSecret: boolean;
  setSecret(secret: Uint8Array): void;
  /** The normal forms that keys were converted to before they were added, or ''. */
  readonly normalizer: string;
  /** A key in that form. has does not do this by itself. */
  normalized(key: Key): Uint8Array;
}

/** A whole file in memory. */
export class Filter extends Head {
  constructor(file: Uint8Array, options?: OpenOptions);
  readonly file: Uint8Array;
  /** Whether a key is probably in the filter; false is certain. */
  has(key: Key): boolean;
  hasMany(keys: Iterable<Key>): boolean[];
  /** How a key is answered. */
  where(key: Key): Place;
}

/** A file that is read by ranges. */
export class RemoteFilter extends Head {
  private constructor();
  has(key: Key, options?: Lookup): Promise<boolean>;
  hasMany(keys: Iterable<Key>, options?: Lookup): Promise<boolean[]>;
  where(key: Key, options?: Lookup): Promise<Place>;
  /** Requests so far, and bytes of their bodies. */
  readonly requests: number;
  readonly bytesRead: number;
}

export function open(file: Blob, options: OpenOptions & { ranges: true }): Promise<RemoteFilter>;
export function open(file: ArrayBuffer | ArrayBufferView | Blob, options?: OpenOptions): Promise<Filter>;
export function openBytes(file: ArrayBuffer | ArrayBufferView, options?: OpenOptions): Filter;
export function openURL(url: string | URL, options?: RangeOptions): Promise<RemoteFilter>;

/** The bytes are no filter file that this reader knows. */
export class FormatError extends Error {
  readonly code: 'format' | 'version' | 'checksum' | 'unclean';
}

/** A file cannot be read by ranges. */
export class SourceError extends Error {
  readonly code: 'http' | 'range' | 'changed' | 'short';
  readonly status: number;
}

/** A keyed filter, and no secret or a wrong one. */
export class SecretError extends Error {}

export function xxh3(key: Key, seed?: bigint | number): bigint;
export function xxh64(key: Key, seed?: bigint | number): bigint;
export function murmur64a(key: Key, seed?: bigint | number): bigint;
export function sipHash(key: Key, secret: Uint8Array): bigint;

export function pairedPositions(hash: bigint, blocks: number | bigint, k: number): PairedPositions;
export function splitPositions(hash: bigint, blocks: number | bigint): { block: number; bits: Bit[] };
export function classicPositions(hash: bigint, m: number | bigint, k: number): { step: bigint; bits: Bit[] };
export function cuckooPlace(hash: bigint, blocks: number | bigint): { fingerprint: number; buckets: [number, number] };
export function schemePositions(name: string, key: Key, m: number | bigint, k: number, seed?: bigint): number[];
export const schemeNames: readonly string[];

/** rows[r] of docs/format.md for this number of bits per line, 1 to 8. */
export function rowOf(perLine: number, r: number): bigint;

/** The expected rate of paired lines with n keys. */
export function pairedRate(n: number, blocks: number, k: number): number;

/** The function that applies normal forms, such as "trim,url", to bytes. */
export function normalizer(names: string): (key: Uint8Array) => Uint8Array;
