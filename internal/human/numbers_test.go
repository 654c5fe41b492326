package human

import "testing"

func TestParseCount(t *testing.T) {
	for s, want := range map[string]uint64{
		"1": 1, "1000000": 1e6, "1e9": 1e9, "1E6": 1e6, "1.5e3": 1500,
		"10_000_000": 1e7, "10,000,000": 1e7, "10M": 1e7, "1.5M": 1.5e6, "2k": 2000, "2K": 2000, "3G": 3e9, "1T": 1e12,
		" 7 ": 7, "10 M": 1e7, "1,000k": 1e6,
	} {
		if got, err := parseCount(s); err != nil || got != want {
			t.Errorf("parseCount(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1", "1.5", "x", "1e", "1e99", "Inf", "NaN", "0x10", "1,00", "1_0", "1,0000", "10MB", "2GiB", "M", "1 2", "10MM"} {
		if got, err := parseCount(s); err == nil {
			t.Errorf("parseCount(%q) = %d, want an error", s, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]uint64{
		"512": 512, "512B": 512, "1KiB": 1024, "1kB": 1000, "1KB": 1000, "2GiB": 2 << 30, "2GB": 2e9, "2G": 2 << 30,
		"64MiB": 64 << 20, "500MB": 5e8, "1.5GiB": 3 << 29, "1TiB": 1 << 40, "2 GiB": 2 << 30, "4k": 4096,
	} {
		if got, err := parseSize(s); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "-1GiB", "GiB", "2GIB", "2 GiBs", "1.0001kB2", "1e30", "2Gi"} {
		if got, err := parseSize(s); err == nil {
			t.Errorf("parseSize(%q) = %d, want an error", s, got)
		}
	}
}

func TestParseBits(t *testing.T) {
	for s, want := range map[string]uint64{"1e9": 1e9, "10M": 1e7, "2GiB": 16 << 30, "1kB": 8000, "1B": 8} {
		if got, err := parseBits(s); err != nil || got != want {
			t.Errorf("parseBits(%q) = %d, %v, want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "2GiBB", "B", "x"} {
		if got, err := parseBits(s); err == nil {
			t.Errorf("parseBits(%q) = %d, want an error", s, got)
		}
	}
}

func TestParseRate(t *testing.T) {
	for s, want := range map[string]float64{
		"0.001": 0.001, ".001": 0.001, "1e-3": 0.001, "1E-3": 0.001, "0.1%": 0.001, "0.1 %": 0.001, "50%": 0.5,
		"1/1000": 0.001, "1 / 1000": 0.001, "1/1e3": 0.001, "3/1000": 0.003,
		"1 in 1000": 0.001, "1 in 10,000": 0.0001, "1 in 1_000_000": 1e-6, " 1 in 8 ": 0.125,
	} {
		if got, err := ParseRate(s); err != nil || got != want {
			t.Errorf("parseRate(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "0", "1", "100%", "-0.1", "1.5", "x", "1/0", "0/1", "1 in", "in 5", "1 in 1", "Inf", "NaN", "1/Inf", "0x1p-3", "%", "1/10%"} {
		if got, err := ParseRate(s); err == nil {
			t.Errorf("parseRate(%q) = %v, want an error", s, got)
		}
	}
}

func TestTrimPrefixes(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"bloom: limit exceeded", "limit exceeded"},
		{"store: bloom: limit exceeded", "limit exceeded"},
		{"store: verifying: store: damaged: redisbloom: x", "verifying: damaged: x"},
		{"open of-store: denied", "open of-store: denied"},
		{"open a bloom: denied", "open a bloom: denied"},
		{"", ""},
	} {
		if got := TrimPrefixes(tt.text); got != tt.want {
			t.Errorf("TrimPrefixes(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Commas(n); got != want {
			t.Errorf("commas(%d) = %q, want %q", n, got, want)
		}
	}
	for rate, want := range map[float64]string{0: "0", 1: "1 in 1", 0.5: "1 in 2", 0.07: "1 in 14.3", 0.001: "1 in 1,000", 1e-15: "1 in 1,000,000,000,000,000", 5.421e-19: "less than 1 in 10^15", 1e-27: "less than 1 in 10^15"} {
		if got := OneIn(rate); got != want {
			t.Errorf("oneIn(%g) = %q, want %q", rate, got, want)
		}
	}
	for n, want := range map[uint64]string{512: "512 B", 1024: "1.0 KiB", 40_000_000: "38.1 MiB", 1 << 63: "8.0 EiB"} {
		if got := BinarySize(n); got != want {
			t.Errorf("binarySize(%d) = %q, want %q", n, got, want)
		}
	}
}
