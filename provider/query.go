package provider

// ReadsQuery tells whether the query of a request belongs to what the provider says:
// its signature covers it or stands in it, or identity is read from it. An app that
// gets the request without its query could not verify or understand it then.
func (c *Checker) ReadsQuery() bool {
	reads := false
	look := func(p *placeholder) {
		switch p.src {
		case srcQuery, srcRawQuery, srcURL, srcURLPathQuery:
			reads = true
		}
	}
	c.plan.each(look)
	for _, list := range [][]*template{c.ids.first, c.ids.join, c.types, c.resources, c.versions} {
		for _, t := range list {
			t.each(look)
		}
	}
	return reads
}
