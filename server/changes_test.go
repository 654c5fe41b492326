package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/bloomery/bloom/internal/resp"
)

// TestOnlyChangesAreTold sends writes that change nothing: they do not break a
// transaction that watches the key, and no client is notified. Writes that change
// something do both.
func TestOnlyChangesAreTold(t *testing.T) {
	addr := startLocal(t)
	w, other, tracking := connect(t, addr), connect(t, addr), connect(t, addr)
	tracking.must(t, "HELLO 3")
	tracking.expect(t, "CLIENT TRACKING ON BCAST", "+OK\r\n")
	for _, tt := range []struct {
		line    string
		changes bool
	}{
		{"DEL none", false}, {"UNLINK none", false}, {"SETNX there x", false}, {"SET there x NX", false}, {"SET none x XX", false}, {"PERSIST there", false},
		{"EXPIRE none 100", false}, {"EXPIRE there 100 XX", false}, {"PEXPIREAT there 4000000000000 GT", false},
		{"RENAMENX there there2", false}, {"RENAME none there2", false},
		{"RENAME there there", false}, {"COPY there there2", false}, {"COPY there none2", false}, {"GETDEL none", false}, {"BF.RESERVE filter 0.01 100", false},
		{"DEL there", true}, {"EXPIRE there 100", true}, {"SET there x", true}, {"GETDEL there", true}, {"COPY there2 there REPLACE", true},
		{"BF.INSERT filter ITEMS x", true}, {"BF.ADD filter y", true}, {"RENAME there2 there", true}, {"FLUSHDB", true}, {"FLUSHALL", true},
	} {
		other.must(t, "FLUSHALL")
		other.must(t, "SET there 1")
		other.must(t, "SET there2 1")
		other.must(t, "BF.ADD filter a")
		w.expect(t, "WATCH none there filter", "+OK\r\n")
		tracking.must(t, "PING")
		tracking.must(t, "PING")
		other.must(t, tt.line)
		tracking.must(t, "PING") // pushes come before or after the reply
		pushes := tracking.pushes
		tracking.must(t, "PING")
		pushes = append(pushes, tracking.pushes...)
		told := false
		for _, push := range pushes {
			names := push.Items[1]
			told = told || names.Kind != resp.Array || !strings.HasPrefix(names.Items[0].Text, "none2")
		}
		w.expect(t, "MULTI", "+OK\r\n")
		broken := w.must(t, "EXEC") == "*-1\r\n"
		if broken != tt.changes || told != tt.changes {
			t.Errorf("%s: breaks a transaction: %v, is told: %v, want %v", tt.line, broken, told, tt.changes)
		}
	}
	// Of several, those that existed.
	other.must(t, "SET there 1")
	w.expect(t, "WATCH none", "+OK\r\n")
	other.expect(t, "DEL none there", ":1\r\n")
	w.expect(t, "MULTI", "+OK\r\n")
	w.expect(t, "EXEC", "*0\r\n")
	// FLUSHALL does not change a name that does not exist.
	w.expect(t, "WATCH none", "+OK\r\n")
	other.expect(t, "FLUSHALL", "+OK\r\n")
	w.expect(t, "MULTI", "+OK\r\n")
	w.expect(t, "EXEC", "*0\r\n")
}

// startLocal serves a store in memory until the test ends.
func startLocal(t testing.TB) string {
	_, addr, _ := serveOn(t, openLocal(t, 1<<30), Config{}, transports["loops"])
	return addr
}

// TestAuthInTransaction: AUTH is queued, and the commands after it may do no more than
// the password allows.
func TestAuthInTransaction(t *testing.T) {
	w := connect(t, startServer(t, Config{Password: "full", ReadOnlyPassword: "read"}))
	w.expect(t, "AUTH full", "+OK\r\n")
	w.expect(t, "MULTI", "+OK\r\n")
	w.expect(t, "AUTH read", "+QUEUED\r\n")
	w.expect(t, "SET k v", "+QUEUED\r\n")
	w.expect(t, "GET k", "+QUEUED\r\n")
	w.expect(t, "EXEC", "*3\r\n+OK\r\n-NOPERM User readonly has no permissions to run the 'set' command\r\n$-1\r\n")
	w.expect(t, "ACL WHOAMI", "$8\r\nreadonly\r\n")
}

// TestMaxClientsWithinFiles: CONFIG SET accepts no more clients than the start does;
// otherwise strangers could take the store's descriptors.
func TestMaxClientsWithinFiles(t *testing.T) {
	w := connect(t, startServer(t, Config{}))
	most := mostClients()
	w.expect(t, fmt.Sprintf("CONFIG SET maxclients %d", most+1), fmt.Sprintf("-ERR CONFIG SET failed (possibly related to argument 'maxclients') - "+
		"The operating system is not able to handle the specified number of clients, try with %d\r\n", most))
	w.expect(t, "CONFIG GET maxclients", fmt.Sprintf("*2\r\n$10\r\nmaxclients\r\n$%d\r\n%d\r\n", len(fmt.Sprint(min(most, 10_000))), min(most, 10_000)))
	w.expect(t, fmt.Sprintf("CONFIG SET maxclients %d", most), "+OK\r\n")
}

// TestWindowsAreNotKept: keys of a window expire without a write, so what a tracking
// client has read of it is declared changed at once.
func TestWindowsAreNotKept(t *testing.T) {
	addr := startLocal(t)
	for mode, reads := range map[string][]string{
		"":        {"BF.EXISTS w x", "BF.MEXISTS w x y", "BF.CARD w"},
		"OPTIN":   {"BF.EXISTS w x"},
		"OPTOUT":  {"BF.EXISTS w x"},
		"BCAST":   {"BF.EXISTS w x", "BF.INFO w ITEMS"},
		"BCAST  ": {"MULTI", "BF.EXISTS w x", "EXEC"},
	} {
		w := connect(t, addr)
		w.must(t, "HELLO 3")
		w.must(t, "FLUSHALL")
		w.expect(t, "BF.RESERVE w 0.01 1000 WINDOW 1s", "+OK\r\n")
		w.must(t, "BF.ADD w x")
		w.must(t, "BF.ADD plain x")
		w.expect(t, strings.TrimSpace("CLIENT TRACKING ON "+mode), "+OK\r\n")
		told := func(line string) int {
			if mode == "OPTIN" {
				w.must(t, "CLIENT CACHING YES")
			}
			w.must(t, line)
			w.must(t, "PING") // the push comes after the reply
			return len(w.pushes)
		}
		count := 0
		for _, line := range reads {
			count += told(line)
		}
		if want := len(strings.Fields(strings.Join(reads, " "))); count == 0 || count > want {
			t.Errorf("%q: %d pushes after %q", mode, count, reads)
		}
		if n := told("BF.EXISTS plain x"); n != 0 {
			t.Errorf("%q: %d pushes after a read of a filter that does not forget", mode, n)
		}
	}
	w := connect(t, addr)
	w.must(t, "HELLO 3")
	w.expect(t, "CLIENT TRACKING ON BCAST PREFIX other", "+OK\r\n")
	w.must(t, "BF.EXISTS w x")
	w.must(t, "PING")
	if len(w.pushes) != 0 {
		t.Error("a name without the prefix is told of")
	}
}

// TestWrongPasswords: they are counted and logged, without filling the log.
func TestWrongPasswords(t *testing.T) {
	var log lockedBuffer
	s, addr, _ := serveOn(t, newFakeStore(), Config{Password: "right", Log: slog.New(slog.NewTextHandler(&log, nil))}, transports["loops"])
	w := connect(t, addr)
	for range 50 {
		w.expect(t, "AUTH wrong", "-"+textWrongPassword+"\r\n")
	}
	w.must(t, "HELLO 3 AUTH default wrong")
	code, _ := get(s.HTTPHandler(HTTPConfig{}), "/metrics", func(r *http.Request) { r.SetBasicAuth("x", "wrong") })
	w.expect(t, "AUTH right", "+OK\r\n")
	wantLines(t, scrape(t, s, HTTPConfig{}), "bloomery_wrong_passwords_total 52")
	if n := strings.Count(log.String(), "wrong password"); n < 1 || n > 3 || code != 401 || !strings.Contains(log.String(), "client="+w.LocalAddr().String()) {
		t.Errorf("%d lines in the log, HTTP answers %d: %s", n, code, log.String())
	}
}

// TestCountsOfDatabases counts the names of each database through all ways in which
// names come and go, without looking at them.
func TestCountsOfDatabases(t *testing.T) {
	local := openLocal(t, 1<<30)
	if err := local.Set(t.Context(), "\x005:before", nil); err != nil {
		t.Fatal(err)
	}
	s, addr, _ := serveOn(t, local, Config{}, transports["loops"])
	w := connect(t, addr)
	for _, line := range []string{
		"SET a 1", "SET a 2", "SET b 1", "BF.ADD f x", "SELECT 3", "SET a 1", "BF.ADD f x", "BF.INSERT g EXPANSION 0 ITEMS x",
		"COPY a c DB 9", "RENAME a z", "SET y 1", "RENAME y z", "RENAMENX z y", "BF.SWAP f g",
		"BF.MERGE m f", "SET gone 1 PX 1", "DEL m none", "SELECT 9", "SET x 1 PX 200", "SELECT 0", "FLUSHDB", "SET q 1", "SELECT 3", "EXPIRE y -1", "RESTORE",
	} {
		w.must(t, line)
		waitFor(t, func() bool { // expired names are counted for some moments
			var want [databases]int
			for name := range s.allNames {
				db, _ := splitName(name)
				want[db]++
			}
			return inDatabases(t, s) == want
		})
	}
	waitFor(t, func() bool { return inDatabases(t, s) == [databases]int{0: 1, 3: 2, 5: 1, 9: 1} }) // when two have expired
	w.expect(t, "DBSIZE", ":2\r\n")
	seen := map[string]bool{}
	for range 200 {
		seen[w.must(t, "RANDOMKEY")] = true
	}
	if len(seen) != 2 {
		t.Errorf("RANDOMKEY: %v, want both keys", seen)
	}
	w.must(t, "FLUSHALL")
	if got := inDatabases(t, s); got != [databases]int{} {
		t.Errorf("after FLUSHALL: %v", got)
	}
	w.expect(t, "RANDOMKEY", "$-1\r\n")
}

func inDatabases(t *testing.T, s *Server) [databases]int {
	t.Helper()
	count, err := s.keysIn()
	if err != nil {
		t.Error(err)
	}
	return count
}
