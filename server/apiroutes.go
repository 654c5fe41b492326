package server

import "net/http"

var (
	paramCount  = param{name: "count", kind: "integer", about: "about how many to answer with"}
	codesFilter = []int{http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusBadGateway}
	codesChange = append([]int{http.StatusUnsupportedMediaType, http.StatusNotImplemented, http.StatusInsufficientStorage}, codesFilter...)
)

// apiRoutes is the table of the API.
var apiRoutes []route

func init() { // the handlers refer to the table
	apiRoutes = []route{
		{method: "GET", path: "/server", summary: "What is known of the server, and what it has counted", needs: accessRead,
			result: serverJSON{}, handle: getServer},
		{method: "POST", path: "/snapshot", summary: "Begins a snapshot, as BGSAVE", needs: accessFull,
			result: doneJSON{}, codes: []int{http.StatusConflict, http.StatusUnsupportedMediaType, http.StatusNotImplemented}, handle: takeSnapshot},
		{method: "GET", path: "/clients", summary: "The connections, as CLIENT LIST", needs: accessFull,
			params: []param{paramCount, {name: "after", kind: "integer", about: "only those with a larger id"}}, result: clientListJSON{}, handle: getClients},
		{method: "DELETE", path: "/clients/{id}", summary: "Closes a connection, as CLIENT KILL ID", needs: accessFull,
			result: doneJSON{}, codes: []int{http.StatusNotFound, http.StatusUnsupportedMediaType}, handle: killClient},
		{method: "GET", path: "/events", summary: "A stream of server-sent events, one a second: the totals, and the filters shown that have changed", needs: accessRead,
			params: []param{{name: "filter", kind: "string", about: "the name of a filter to show, percent-encoded", many: true}},
			result: eventJSON{}, codes: []int{http.StatusRequestEntityTooLarge}, stream: streamEvents},
		{method: "GET", path: "/filters", summary: "A page of the list of filters, in no order, as SCAN", needs: accessRead,
			params: []param{{name: "cursor", kind: "string", about: "0, or next of the page before"}, paramCount,
				{name: "match", kind: "string", about: "only names that match a pattern, as for SCAN"},
				{name: "rates", kind: "boolean", about: "read the bits of filters that have changed, as far as 200 ms allow"}},
			result: filterListJSON{}, codes: codesFilter, handle: getFilters},
		{method: "GET", path: "/filters/{name}", summary: "All that is known of a filter; reads its bits, or a sample of them", needs: accessRead,
			result: detailJSON{}, codes: codesFilter, handle: getFilter},
		{method: "PUT", path: "/filters/{name}", summary: "Makes a filter, as BF.RESERVE", needs: accessFull,
			body: reserveJSON{}, result: doneJSON{}, codes: codesChange, handle: putFilter},
		{method: "DELETE", path: "/filters/{name}", summary: "Deletes a filter, as DEL", needs: accessFull,
			result: doneJSON{}, codes: codesChange, handle: deleteFilter},
		{method: "GET", path: "/filters/{name}/population", summary: "How many bits are set in each part of a layer, for a picture", needs: accessRead,
			params: []param{{name: "parts", kind: "integer", about: "how many parts; fewer if the layer is small"},
				{name: "layer", kind: "integer", about: "counted from the oldest, 0; missing: the newest"}},
			result: populationJSON{}, codes: append([]int{http.StatusNotImplemented}, codesFilter...), handle: getPopulation},
		{method: "POST", path: "/filters/{name}/test", summary: "Looks one key up, as BF.EXISTS, and shows its hash and its bits", needs: accessRead,
			body: keyJSON{}, result: verdictJSON{}, codes: codesChange, handle: testKey},
		{method: "POST", path: "/filters/{name}/check", summary: "Looks keys up, as BF.MEXISTS", needs: accessRead,
			body: keysJSON{}, result: foundJSON{}, codes: codesChange, handle: checkKeys},
		{method: "POST", path: "/filters/{name}/add", summary: "Adds keys, as BF.MADD, which makes the filter if there is none; to a cuckoo filter, as CF.INSERTNX", needs: accessFull,
			body: keysJSON{}, result: addedJSON{}, codes: codesChange, handle: addKeys},
		{method: "POST", path: "/filters/{name}/rename", summary: "Renames a filter, as RENAMENX, or as RENAME", needs: accessFull,
			body: renameJSON{}, result: doneJSON{}, codes: codesChange, handle: renameFilter},
		{method: "POST", path: "/filters/{name}/swap", summary: "Exchanges two filters, as BF.SWAP", needs: accessFull,
			body: swapJSON{}, result: doneJSON{}, codes: codesChange, handle: swapFilter},
		{method: "POST", path: "/filters/{name}/fold", summary: "Makes a filter smaller by a factor, as BF.FOLD", needs: accessFull,
			body: foldJSON{}, result: doneJSON{}, codes: codesChange, handle: foldFilter},
		{method: "POST", path: "/filters/{name}/merge", summary: "Adds the keys of other filters, as BF.MERGE", needs: accessFull,
			body: mergeJSON{}, result: doneJSON{}, codes: codesChange, handle: mergeFilter},
		{method: "POST", path: "/filters/{name}/expire", summary: "Sets when the name expires, as PEXPIRE and PERSIST", needs: accessFull,
			body: expireJSON{}, result: doneJSON{}, codes: codesChange, handle: expireFilter},
	}
}

// A Route is a row of the table of the API over HTTP, for printing.
type Route struct {
	Method, Path string
	Summary      string
	Full         bool // it takes the full password, if one is set
}

// Routes returns the routes of the API, in an order for reading.
func Routes() []Route {
	rows := make([]Route, len(apiRoutes))
	for i, row := range apiRoutes {
		rows[i] = Route{row.method, apiPrefix + row.path, row.summary, row.needs == accessFull}
	}
	return rows
}
