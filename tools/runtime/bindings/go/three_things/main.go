// three_things does what every binding's example does (bindings/README.md).
package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"strings"

	"mlc"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func readDigits(path, images string) {
	model, err := mlc.Load(path, "")
	check(err)
	request, err := model.NewRequest()
	check(err)
	file, err := os.Open(images)
	check(err)
	defer file.Close()
	fmt.Print("digits:")
	bytes, image := make([]byte, 256), make([]float32, 64)
	for {
		if _, err := io.ReadFull(file, bytes); err != nil {
			break
		}
		for i := range image {
			image[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
		}
		check(mlc.SetInput(request, "image", image, 1, 1, 8, 8))
		results, err := request.Run(0)
		check(err)
		scores, _, err := mlc.Output[float32](results, "probabilities")
		check(err)
		best := 0
		for i, score := range scores {
			if score > scores[best] {
				best = i
			}
		}
		fmt.Print(" ", best)
	}
	fmt.Println()
}

func speak(path, prompt string) {
	model, err := mlc.Load(path, "")
	check(err)
	tokenizer, err := mlc.LoadTokenizer(path)
	check(err)
	generator, err := mlc.NewGenerator(model, tokenizer, "")
	check(err)
	check(generator.Feed(prompt))
	text := prompt
	for done := false; !done; {
		var piece string
		piece, done, err = generator.Next()
		check(err)
		text += piece
	}
	fmt.Println("text:", text)
}

// sum = 0 + 1 + ... + (n - 1)
func loop(path string) {
	program := mlc.NewProgram("")
	body := program.Function("main")
	limit := body.Begin("squeeze", "limit").Args("x", body.Input("n", mlc.Int32, 1)).Finish()[0]
	zero := mlc.Constant(body, "", []int32{0})
	op := body.Begin("while_loop", "loop").Args("loop_vars", zero, zero)
	condition, step := op.Block(0), op.Block(1)
	counter := condition.Input("i", mlc.Int32)
	condition.Input("s", mlc.Int32)
	condition.Output("", condition.Begin("less", "").Args("x", counter).Args("y", limit).Finish()[0])
	i, s := step.Input("i", mlc.Int32), step.Input("s", mlc.Int32)
	step.Output("", step.Begin("add", "").Args("x", i).Int("y", 1).Finish()[0])
	step.Output("", step.Begin("add", "").Args("x", s).Args("y", i).Finish()[0])
	results := op.Finish()
	check(program.Err())
	body.Output("sum", body.Begin("expand_dims", "sum").Args("x", results[1]).Ints("axes", 0).Finish()[0])
	model, err := program.Load("")
	check(err)
	request, err := model.NewRequest()
	check(err)
	fmt.Print("loop:")
	for n := int32(0); n <= 5; n++ {
		check(mlc.SetInput(request, "n", []int32{n}, 1))
		results, err := request.Run(0)
		check(err)
		sum, _, err := mlc.Output[int32](results, "sum")
		check(err)
		fmt.Print(" ", sum[0])
	}
	fmt.Println()
	check(program.Write(path))
	written, err := mlc.Load(path, "")
	check(err)
	placements, err := written.Placements()
	check(err)
	if strings.Contains(placements, "while_loop") {
		fmt.Println("package: while_loop")
	}
}

func main() {
	readDigits(os.Args[1], os.Args[2])
	speak(os.Args[3], os.Args[4])
	loop(os.Args[5])
}
