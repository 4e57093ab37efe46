// SPDX-License-Identifier: Apache-2.0

// Reads one quantity text per line and answers each with one line: "error", or the canonical text, the value in
// thousandths ("-" where it is negative or does not fit: Go rounds and overflows there in its own ways) and how it
// compares with the last good one (-1, 0, 1), separated by tabs.
// This is the Go original that quantity_oracle_test.cc compares with.
package main

import (
	"bufio"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Go has suffixes up to 10^18; beyond, it prints the digits alone, which is another number. We print an exponent.
func canonical(q resource.Quantity) string {
	if q.Format == resource.DecimalSI {
		if number, exponent := q.AsCanonicalBytes(nil); exponent > 18 {
			return fmt.Sprintf("%se%d", number, exponent)
		}
	}
	number, suffix := q.CanonicalizeBytes(nil)
	return string(number) + string(suffix)
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	limit := resource.MustParse("9e15")
	last := resource.MustParse("0")
	for in.Scan() {
		q, err := resource.ParseQuantity(in.Text())
		if err != nil {
			fmt.Fprintln(out, "error")
			continue
		}
		milli := "-"
		if q.Sign() >= 0 && q.Cmp(limit) < 0 {
			milli = fmt.Sprint(q.MilliValue())
		}
		fmt.Fprintf(out, "%s\t%s\t%d\n", canonical(q), milli, q.Cmp(last))
		last = q
	}
}
