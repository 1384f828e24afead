package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// curve is a line of a chart: points of increasing x. A dashed one stands in the
// color of the one before and is not named.
type curve struct {
	name   string
	dashed bool
	points [][2]float64
}

// chart is a panel with a logarithmic x axis and a y axis from 0.
type chart struct {
	title, x string
	curves   []curve
}

const (
	chartWidth, chartHeight = 420, 260
	marginLeft, marginRight = 56, 16
	marginTop, marginBottom = 36, 40
)

var colors = []string{"#0969da", "#cf5c00", "#1a7f37", "#8250df"}

// picture is the growth of all servers: seconds per row and peak memory, by rows
// of one table and by tables of as many rows together.
func picture(all []record) string {
	sizes := growth(all)
	most := map[string]*group{} // of each server, that with the most tables
	for _, g := range sizes {
		most[g.Server] = g
	}
	rows := func(g *group) (float64, bool) { return float64(g.Rows), g.Tables == 1 }
	tables := func(g *group) (float64, bool) { return float64(g.Tables), g.Rows == most[g.Server].Rows }
	charts := []chart{{title: "µs per row", x: "rows of one table"}, {title: "µs per row", x: "tables"},
		{title: "peak memory, MiB", x: "rows of one table"}, {title: "peak memory, MiB", x: "tables"}}
	for _, g := range sizes {
		for i, of := range []func(*group) (float64, bool){rows, tables} {
			if x, ok := of(g); ok {
				charts[i].add(g.Server, false, x, g.median(ourWay, microsPerRow))
				charts[i].add(g.Server, true, x, g.median(limitWay, microsPerRow))
				charts[i+2].add(g.Server, false, x, g.median(ourWay, peakMiB))
			}
		}
	}
	return draw(charts)
}

// add appends a point to the curve of that name; nothing for what was not measured.
func (c *chart) add(name string, dashed bool, x, y float64) {
	if y == 0 {
		return
	}
	i := slices.IndexFunc(c.curves, func(c curve) bool { return c.name == name && c.dashed == dashed })
	if i < 0 {
		i = len(c.curves)
		c.curves = append(c.curves, curve{name: name, dashed: dashed})
	}
	c.curves[i].points = append(c.curves[i].points, [2]float64{x, y})
}

// draw places the charts in two columns.
func draw(charts []chart) string {
	var b strings.Builder
	rows := (len(charts) + 1) / 2
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", 2*chartWidth, rows*chartHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	for i, c := range charts {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%2*chartWidth, i/2*chartHeight)
		c.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (c chart) draw(b *strings.Builder) {
	low, high, top := c.bounds()
	px := func(x float64) float64 {
		return marginLeft + (chartWidth-marginLeft-marginRight)*(math.Log10(x)-low)/(high-low)
	}
	py := func(y float64) float64 {
		return chartHeight - marginBottom - (chartHeight-marginTop-marginBottom)*y/top
	}
	fmt.Fprintf(b, `<text x="%d" y="18" font-weight="bold">%s</text>`+"\n", marginLeft, c.title)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (marginLeft+chartWidth-marginRight)/2, chartHeight-6, c.x)
	for i := range 5 {
		y := top * float64(i) / 4
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.4g</text>`+"\n",
			marginLeft, py(y), chartWidth-marginRight, marginLeft-6, py(y)+4, y)
	}
	for e := low; e <= high; e++ {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n", px(math.Pow(10, e)), chartHeight-marginBottom+16, math.Pow(10, e))
	}
	c.drawCurves(b, px, py)
}

func (c chart) drawCurves(b *strings.Builder, px, py func(float64) float64) {
	named, color := 0, ""
	for _, line := range c.curves {
		dashes := "4"
		if !line.dashed {
			color, dashes = colors[named%len(colors)], "none"
			fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s</text>`+"\n", chartWidth-marginRight, 14+14*named, color, line.name)
			named++
		}
		var path []string
		for _, p := range line.points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", px(p[0]), py(p[1])))
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", px(p[0]), py(p[1]), color)
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", strings.Join(path, " "), color, dashes)
	}
}

// bounds are the powers of ten around x, and a round figure above all y.
func (c chart) bounds() (low, high, top float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, line := range c.curves {
		for _, p := range line.points {
			low, high, top = min(low, math.Floor(math.Log10(p[0]))), max(high, math.Ceil(math.Log10(p[0]))), max(top, p[1])
		}
	}
	if math.IsInf(low, 0) || top == 0 {
		return 0, 1, 1
	}
	step := math.Pow(10, math.Floor(math.Log10(top)))
	return low, max(high, low+1), step * math.Ceil(top*1.1/step)
}
