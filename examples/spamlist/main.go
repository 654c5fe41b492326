// Command spamlist keeps a block list of spammers with exceptions for the people one
// knows:
//
//	go run ./examples/spamlist
//
// A filter takes some honest senders for spammers. For strangers that is the price; for
// the people in the address book it can be avoided, because they are known beforehand:
// look each of them up once, and except those that the filter finds by mistake.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/bloomery/bloom"
)

func main() {
	log.SetFlags(0)
	dir, err := os.MkdirTemp("", "spamlist")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := run(filepath.Join(dir, "spammers.bloom")); err != nil {
		log.Fatal(err)
	}
}

func run(path string) error {
	// The spammers: a hundred thousand addresses, one honest sender in a hundred is
	// mistaken for one of them.
	spammers, err := bloom.New(100_000, 0.01)
	if err != nil {
		return err
	}
	listed := map[string]bool{} // only while the filter is built
	for i := range 100_000 {
		address := fmt.Sprintf("offer%d@spam.example", i)
		spammers.AddString(address)
		listed[address] = true
	}

	// The address book: 2,000 people, one of whom is on the list of spammers.
	book := []string{"offer4711@spam.example"}
	for i := range 1999 {
		book = append(book, fmt.Sprintf("friend%d@home.example", i))
	}
	fmt.Println("of the address book,", count(spammers, book), "are taken for spammers")

	// Except those that are found and are not on the list. Except cannot check that a key
	// was never added: excepting a real spammer would let his mail through.
	filter := bloom.WithExceptions(spammers)
	for _, address := range book {
		if filter.ContainsString(address) && !listed[address] {
			if err := filter.ExceptString(address); err != nil {
				return err
			}
		}
	}
	fmt.Println("with", filter.Len(), "exceptions it is", count(filter, book))

	// The exceptions are in the file.
	if err := filter.Save(path); err != nil {
		return err
	}
	loaded, err := bloom.LoadExceptions(path)
	if err != nil {
		return err
	}
	fmt.Println("loaded from the file it is", count(loaded, book))

	// Strangers still meet the rate.
	var strangers []string
	for i := range 10_000 {
		strangers = append(strangers, fmt.Sprintf("stranger%d@elsewhere.example", i))
	}
	fmt.Println("of 10000 strangers,", count(loaded, strangers), "are taken for spammers")

	// A friend whose computer was broken into sends spam. Add drops the exception.
	for friend := range loaded.Excepted() {
		before := loaded.Contains(friend)
		loaded.Add(friend)
		fmt.Printf("%s blocked: before %v, now %v; %d exceptions left\n", friend, before, loaded.Contains(friend), loaded.Len())
		break
	}
	return nil
}

// count returns how many addresses the filter finds. It takes filters of any kind.
func count(filter bloom.Any, addresses []string) (found int) {
	for _, address := range addresses {
		if filter.Contains([]byte(address)) {
			found++
		}
	}
	return found
}
