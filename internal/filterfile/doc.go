// Package filterfile reads and writes Bloomery's filter files: it knows pages,
// sections, checksums and words, and nothing of hashing or of what the bits mean.
// docs/format.md draws every field; this is the overview:
//
//	        0 ┌──────────────────────────────────┐
//	          │ page 0    header: what it is     │ never changes
//	    4,096 ├──────────────────────────────────┤
//	          │ page 1    state: where its       │ ┐ written in turn: the higher
//	    8,192 ├──────────────────  sections lie ─┤ │ generation is in force
//	          │ page 2    state, or zeros        │ ┘
//	   12,288 ├──────────────────────────────────┤
//	          │ body      sections: the bits,    │ each on a page boundary
//	          │           zeros between them     │
//	checksums ├──────────────────────────────────┤
//	          │ CRC-32C of each MiB of the body  │
//	          │ CRC-32C of these checksums       │
//	fileBytes └──────────────────────────────────┘
//
// Everything is little-endian. The first three pages say how long the file must be
// and where each section lies. The two state pages are written in turn, each whole,
// so that one of them is always intact.
//
// A [File] stands between a filter and its bytes. To write a filter, make a File with
// [New] and write it whole with [File.WriteTo], or piece by piece as an [Image]. To read
// a filter, make it from the File that [Read], [Load] or [Open] returns. An [Updater]
// changes a file in place.
//
// Bytes from strangers are checked before they are trusted: magic, version, checksum
// and every field of a page before anything is allocated, then the body as it arrives,
// in memory that grows only with it.
package filterfile
