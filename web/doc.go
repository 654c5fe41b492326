// Package web has what Bloomery offers in browsers.
//
// bloomery.js and the modules next to it read filter files in JavaScript, in browsers
// and in Node.js: whole files, and by HTTP Range parts of files that stay where they
// are. README.md says how; docs/format.md is the format.
package web
