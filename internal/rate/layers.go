package rate

import "github.com/bloomery/bloom/internal/elementary"

// Layers combines the reports of several filters that are looked up one after the other.
// It assumes that no key is in two of them, so that they answer independently; otherwise
// the true rate is lower and the true number of keys smaller.
type Layers struct {
	Keys, KeysError float64
	RateError       float64
	passed          float64 // the logarithm of the chance that no layer finds an absent key
}

// Add adds a layer's rate and keys, each with its standard error.
func (l *Layers) Add(rate, rateError, keys, keysError float64) {
	l.passed += elementary.Log1p(-rate)
	l.RateError = elementary.Hypot(l.RateError, rateError)
	l.Keys += keys
	l.KeysError = elementary.Hypot(l.KeysError, keysError)
}

// Rate returns the chance that at least one layer finds an absent key.
func (l *Layers) Rate() float64 { return -elementary.Expm1(l.passed) }
