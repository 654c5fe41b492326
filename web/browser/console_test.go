package browser

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
)

var buildServer = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "bloomery")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "bloomery")
	command := exec.Command("go", "build", "-o", path, "./cmd/bloomery")
	command.Dir = root
	if text, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	return path, nil
})

// A console is a real server, for the console in a tab.
type console struct {
	t    *testing.T
	url  string
	resp net.Conn
	in   *bufio.Reader
	pass string // for api
	data string // the directory, unless the flags name one
	end  func() // stops the server
}

var addressIn = regexp.MustCompile(`msg="?(serving HTTP|serving)"? .*?address=([0-9.:]+)`)

// startConsole starts bloomery serve, and stops it when the test ends.
func startConsole(t *testing.T, flags ...string) *console {
	t.Helper()
	program, err := buildServer()
	if err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	command := exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data", data}, flags...)...)
	errors, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		command.Process.Signal(syscall.SIGTERM)
		command.Wait()
	})
	t.Cleanup(end)
	c, lines := &console{t: t, data: data, end: end}, bufio.NewScanner(errors)
	var log []string
	for (c.url == "" || c.resp == nil) && lines.Scan() {
		log = append(log, lines.Text())
		switch found := addressIn.FindStringSubmatch(lines.Text()); {
		case found == nil:
		case found[1] == "serving HTTP":
			c.url = "http://" + found[2]
		default:
			if c.resp, err = net.Dial("tcp", found[2]); err != nil {
				t.Fatal(err)
			}
			c.in = bufio.NewReader(c.resp)
		}
	}
	go io.Copy(io.Discard, errors)
	if c.resp == nil || c.url == "" {
		t.Fatalf("the server does not serve:\n%s", strings.Join(log, "\n"))
	}
	t.Cleanup(func() { c.resp.Close() })
	return c
}

// say sends commands and reads their replies, which are one line each.
func (c *console) say(commands ...string) {
	c.t.Helper()
	c.resp.SetDeadline(time.Now().Add(time.Minute))
	for _, command := range commands {
		fmt.Fprintf(c.resp, "%s\r\n", command)
	}
	for _, command := range commands {
		line, err := c.in.ReadString('\n')
		if err != nil || line[0] == '-' {
			c.t.Fatalf("%s: %q, %v", command, line, err)
		}
		if n := 0; line[0] == '*' {
			fmt.Sscanf(line, "*%d", &n)
			for range n {
				c.in.ReadString('\n')
			}
		}
	}
}

// api asks the API.
func (c *console) api(path string, into any) {
	c.t.Helper()
	request, err := http.NewRequest("GET", c.url+"/api/v1"+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	request.SetBasicAuth("", c.pass)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != 200 {
		c.t.Fatalf("%s: %d, %v", path, answer.StatusCode, err)
	}
}

// fill makes filters of every kind, with keys in them.
func (c *console) fill() {
	c.t.Helper()
	c.say("BF.RESERVE crawler:seen 0.001 20000", "BF.RESERVE sessions 0.01 5000 LAYOUT PAIRED NONSCALING", "BF.RESERVE emails:sent 0.0001 4000 LAYOUT PAIRED PUBLIC",
		"BF.RESERVE login-attempts 0.001 3000 WINDOW 1h", "BF.RESERVE coupons 0.01 100 NONSCALING", "BF.RESERVE 去重:文章 0.001 10000", "BF.RESERVE nightly 0.01 1000 TTL 90000")
	c.addMany("crawler:seen", 9000)
	c.addMany("sessions", 4500)
	c.addMany("emails:sent", 7000)
	c.addMany("login-attempts", 1500)
	c.addMany("coupons", 100)
	c.addMany("去重:文章", 2000)
}

func (c *console) addMany(name string, n int) {
	c.t.Helper()
	for from := 0; from < n; from += 500 {
		command := "BF.MADD " + name
		for i := from; i < min(from+500, n); i++ {
			command += fmt.Sprintf(" key:%d", i)
		}
		c.say(command)
	}
}

// size sets the size of the screen.
func (b *tab) size(width, height int64) {
	b.t.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 600})
}

// picture takes a picture, which is kept with -shots.
func (b *tab) picture(name string, width, height int64) {
	b.t.Helper()
	b.size(width, height)
	time.Sleep(500 * time.Millisecond)
	data := b.shot(float64(width), 0)
	dir := *shots
	if dir == "" {
		dir = b.t.TempDir()
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644); err != nil || len(data) < 1000 {
		b.t.Fatalf("%s: %d bytes, %v", name, len(data), err)
	}
}
