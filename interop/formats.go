package interop

// Formats are all formats, those first whose marks are surest.
var Formats = []*Format{
	redisDumpFormat,
	redisBloomFormat,
	bitSetFormat,
	dcsoFormat,
	parquetFormat,
	npmBloomFormat,
	bloomFilterJSFormat,
	bitsAndBloomsJSONFormat,
	bitsAndBloomsFormat,
	guavaFormat,

	// Bare bits, with no mark at all.
	setBitFormat,
	bitSetBytesFormat,
	parquetBitSetFormat,
	bloomFilterJSArrayFormat,
	pythonListFormat,
	pythonStringFormat,
}
