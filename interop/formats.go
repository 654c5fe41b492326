package interop

// Formats are all formats, those first whose marks are surest.
var Formats = []*Format{}
