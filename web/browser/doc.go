// Package browser tests in a real browser what package web has for browsers. It is a
// module of its own, so that the library does not depend on what drives the browser.
//
// The tests need Debian's chromium-headless-shell, which make browser installs.
package browser
