package interop

// Formats lists all formats, those that are recognised most reliably first.
var Formats = []*Format{
	redisDumpFormat,
	redisBloomFormat,
	cuckooFormat,
	bitSetFormat,
	dcsoFormat,
	parquetFormat,
	npmBloomFormat,
	bloomFilterJSFormat,
	bitsAndBloomsJSONFormat,
	bitsAndBloomsFormat,
	guavaFormat,

	// Bare bits, with nothing to recognise them by.
	setBitFormat,
	bitSetBytesFormat,
	parquetBitSetFormat,
	bloomFilterJSArrayFormat,
	pythonListFormat,
	pythonStringFormat,
}
