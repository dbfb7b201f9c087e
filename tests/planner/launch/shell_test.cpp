// The reading of shell scripts, against bash itself: every snippet starts `torchrun`, and bash says with which words.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/private_folder.h"
#include "planner/launch/arguments.h"
#include "planner/launch/shell/reading.h"
#include "planner/launch/surroundings.h"

namespace trivium::planner::launch::shell {
namespace {

/// What bash passes: the words of every call of torchrun, each after a zero byte.
std::string words_by_bash(const std::filesystem::path& folder, const std::string& script) {
  std::ofstream(folder / "script.sh") << script;
  const std::string command =
      "cd '" + folder.string() +
      "' && env -i PATH=\"$PATH\" bash -c 'torchrun() { printf \"%s\\0\" torchrun \"$@\" >> words; }; "
      "export -f torchrun; . ./script.sh' >/dev/null 2>&1; cat words";
  FILE* pipe = popen(command.c_str(), "r");
  std::string all;
  std::array<char, 4096> part{};
  for (std::size_t n = 0; (n = fread(part.data(), 1, part.size(), pipe)) > 0;) all.append(part.data(), n);
  pclose(pipe);
  return all;
}

std::string words_by_reading(const std::string& script) {
  std::string all;
  for (const Started& started : read(script, "script.sh", {}).started) {
    for (const std::string& word : started.words) all += word + '\0';
  }
  return all;
}

struct Snippet {
  const char* name;
  const char* text;
};

// Each one is a spelling that launch scripts use.
constexpr std::array kSnippets{
    Snippet{"append_self", "A='--a 1'\nA=\"$A --b 2\"\nA+=\" --c 3\"\ntorchrun x.py $A\n"},
    Snippet{"append_array", "A=(--a 1)\nA+=(--b 'two words')\nA+=(\n  --c 3 # note\n)\ntorchrun x.py \"${A[@]}\"\n"},
    Snippet{"array_unquoted", "A=(--a '1 2' \"\")\ntorchrun x.py ${A[@]} ${#A[@]} ${A[1]} \"${A[*]}\"\n"},
    Snippet{"defaults", "torchrun ${A:-1} ${B-2} ${C:=3} $C ${C:+4} ${D:+5} ${#C}\n"},
    Snippet{"assign_default", ": ${TP:=4}\n: \"${PP:=2}\"\ntorchrun --t $TP --p $PP\n"},
    Snippet{"prefix_suffix",
            "F=/a/b.c.d\ntorchrun ${F##*/} ${F#*/} ${F%.*} ${F%%.*} ${F/b/x} ${F//\\//-} ${F:1:3} ${F: -1}\n"},
    Snippet{"letter_case", "A=llama\ntorchrun ${A^} ${A^^} ${A,,}\n"},
    Snippet{"arithmetic",
            "N=4\nG=$((N * 8))\nlet H=G+1\n((N++))\ntorchrun $G $H $N $((7/2)) $((-7%3)) $((2**10)) $((1<<4|3)) "
            "$((N>4?1:0))\n"},
    Snippet{"arithmetic_octal", "torchrun $((010)) $((0x1F)) $((3==3&&2<1))\n"},
    Snippet{"expr", "torchrun $(expr 8 \\* 16) `expr 3 + 4`\n"},
    Snippet{"continued", "A=\" \\\n --a 1 \\\n --b 2 \\\n \"\ntorchrun \\\n  x.py $A \\\n  --c\n"},
    Snippet{"comment", "torchrun a # b c\n# torchrun d\ntorchrun e#f\n"},
    Snippet{"quotes", "torchrun 'a b' \"c  d\" e\\ f 'g\"h' \"i'j\" \"\\$k\" '$l' \"m\\\"n\" $'o\\tp'\n"},
    Snippet{"if_else", "S=8B\nif [ $S = 8B ]; then T=4; elif [ $S = 70B ]; then T=8; else T=1; fi\ntorchrun $T\n"},
    Snippet{"double_bracket", "S=8B\nif [[ $S == 8* && -n $S && ! $S == 70B ]]; then T=4; else T=8; fi\ntorchrun $T\n"},
    Snippet{"numbers",
            "N=5\nif [ $N -gt 4 ] && [ \"$N\" -le 5 ]; then torchrun yes; else torchrun no; fi\n(( N == 5 )) && "
            "torchrun five\n"},
    Snippet{"regex", "S=llama-70b\nif [[ $S =~ ([0-9]+)b ]]; then torchrun yes; fi\n"},
    Snippet{"case", "S=70B\ncase $S in\n  8B) T=4 ;;\n  7*|13B) T=8 ;;\n  *) T=1 ;;\nesac\ntorchrun $T\n"},
    Snippet{"case_falls", "case a in a) X=1 ;& b) X=${X}2 ;; c) X=3 ;; esac\ntorchrun $X\n"},
    Snippet{"for", "for T in 2 4 8; do torchrun --t $T; done\nfor ((i=0; i<3; i++)); do torchrun $i; done\n"},
    Snippet{"while",
            "i=0\nwhile [ $i -lt 3 ]; do i=$((i+1)); [ $i = 2 ] && continue; torchrun $i; done\nuntil [ $i = 0 ]; do "
            "i=$((i-1)); done\ntorchrun $i\n"},
    Snippet{"break", "for i in 1 2; do for j in 1 2; do torchrun $i $j; [ $j = 1 ] && break; done; done\n"},
    Snippet{"function",
            "f() { local a=$1; shift; torchrun \"$a\" \"$@\" $#; }\nf 1 '2 3' 4\nfunction g { echo \"--t $1\"; "
            "}\ntorchrun $(g 4)\n"},
    Snippet{"return", "f() { return 1; torchrun never; }\nif f; then torchrun a; else torchrun b; fi\n"},
    Snippet{"bash_c", "C='--a 1'\nbash -c \"torchrun x.py $C --r \\$((1+1))\"\n"},
    Snippet{"eval", "C=\"torchrun x.py --a 'b c'\"\neval $C\n"},
    Snippet{"exported", "export A=1 B='2 3'\ndeclare -a C=(4 5)\nreadonly D=6\ntorchrun $A \"$B\" ${C[@]} $D\n"},
    Snippet{"heredoc_script", "cat > run.sh <<'EOT'\ntorchrun x.py --a $1\nEOT\nbash run.sh 7\n"},
    Snippet{"heredoc_expands", "N=3\ncat <<EOT > n.txt\n$((N+1)) \"$N\"\nEOT\ntorchrun $(cat n.txt)\n"},
    Snippet{"heredoc_tabs", "cat <<-EOT > n.txt\n\ta\n\tb\n\tEOT\ntorchrun $(cat n.txt)\n"},
    Snippet{"read_heredoc", "read -r -d '' A <<'EOT'\n--a 1\n--b 2\nEOT\ntorchrun $A\n"},
    Snippet{"braces", "torchrun {a,b}{1..3} {1..10..4} \"{x,y}\"\n"},
    Snippet{"associative", "declare -A M=([a]=1 [b]=2)\nM[c]=3\ntorchrun ${M[a]} ${M[c]}\n"},
    Snippet{"indirect", "A_8B=4\nN=A_8B\ntorchrun ${!N}\n"},
    Snippet{"slices", "A=(1 2 3 4)\ntorchrun ${A[@]:1:2} ${A[-0]} ${A[$((1+1))]}\n"},
    Snippet{"set_arguments", "set -e\nset -- a 'b c'\ntorchrun $# \"$@\" $1\n"},
    Snippet{"subshell", "A=1\n(A=2; torchrun $A)\n{ A=3; }\ntorchrun $A\n"},
    Snippet{"and_or", "false || torchrun a\ntrue && torchrun b\n! false && torchrun c\nfalse && torchrun never\n"},
    Snippet{"pipes", "torchrun a 2>&1 | cat > log\ntorchrun b > log 2>&1\necho 5 | { read x; torchrun $x; }\n"},
    Snippet{"basename", "torchrun $(basename /a/b.sh .sh) $(dirname /a/b/c) $(printf '%03d' 7) $(seq 1 3)\n"},
    Snippet{"before_command", "A=1\nA=2 torchrun $A\ntorchrun $A\n"},
    Snippet{"unset", "A=1\nunset A\ntorchrun ${A:-none}\n"},
    Snippet{"nested_quotes", "A=1\ntorchrun \"$(echo \"a $(echo \"$A b\")\")\"\n"},
    Snippet{"command_in_variable", "L='torchrun --n 4'\nC='x.py --a 1'\n$L $C\n"},
    Snippet{"array_of_command", "C=(torchrun --n 4 'a b')\n\"${C[@]}\" x.py\n"},
    Snippet{"equals", "A=--b=2\ntorchrun --a=1 $A --c='3 4'\n"},
    Snippet{"test_strings",
            "A=\nif [ -z \"$A\" ]; then torchrun empty; fi\nif [ \"x$A\" = x ]; then torchrun same; fi\n[ a != b -a 1 "
            "-lt 2 ] && torchrun both\n"},
};

class Snippets : public testing::TestWithParam<Snippet> {};

TEST_P(Snippets, AreReadAsBashRunsThem) {
  const base::PrivateFolder folder(base::temporary_folder(), "trivium-shell-test-");
  const std::string truth = words_by_bash(folder.path(), GetParam().text);
  ASSERT_FALSE(truth.empty());
  EXPECT_EQ(words_by_reading(GetParam().text), truth);
}

INSTANTIATE_TEST_SUITE_P(Bash, Snippets, testing::ValuesIn(kSnippets),
                         [](const auto& one) { return std::string(one.param.name); });

std::string refusal_of(const std::string& script) {
  try {
    read(script, "x.sh", {});
  } catch (const base::Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(Reading, NamesTheLineOfWhatIsNoScript) {
  EXPECT_EQ(refusal_of("A=1\nif true; then\ntorchrun\n"), "x.sh:4: \"fi\" is missing");
  EXPECT_EQ(refusal_of("A=1\n\nA='x\n"), "x.sh:3: a single quote is never closed");
  EXPECT_EQ(refusal_of("A=$((1/0))\n"), "x.sh:1: division by zero");
}

TEST(Reading, IsLimited) {
  EXPECT_NE(refusal_of("A=xxxxxxxx\nwhile true; do A=$A$A; done\n").find("16 MiB"), std::string::npos);
  EXPECT_NE(refusal_of("while true; do :; done\n").find("100000 commands"), std::string::npos);
  EXPECT_NE(refusal_of("f() { f; }\nf\n").find("too often"), std::string::npos);
  EXPECT_NE(refusal_of(std::string(5000, '(') + "\n"), "");
  EXPECT_NE(refusal_of("A=" + std::string(5000, '$') + std::string(500, '(') + "\n"), "");
}

TEST(Reading, KeepsWhatOnlyARunKnows) {
  const Reading reading =
      read("torchrun --n $(hostname | wc -l) --t $TP --g $((TP * 2)) --s $SLURM_PROCID\n", "x.sh", {});
  ASSERT_EQ(reading.started.size(), 1U);
  std::string all;
  for (const std::string& word : reading.started.front().words) all += with_dollars(word) + "|";
  EXPECT_EQ(all, "torchrun|--n|$(wc -l)|--t|$TP|--g|$((TP * 2))|--s|$SLURM_PROCID|");
}

TEST(Reading, StatesWhatItTakesForTrue) {
  const Reading reading =
      read("if [ \"$FP8\" = 1 ]; then A=--fp8; fi\nif [ -z \"$CKPT\" ]; then exit 1; fi\ntorchrun x $A\n", "x.sh", {});
  ASSERT_EQ(reading.started.size(), 1U);
  EXPECT_EQ(reading.started.front().words, (std::vector<std::string>{"torchrun", "x",
                                                                     "\x01"
                                                                     "A\x02"}));
  const std::vector<Assumption> expected{{"", 1, "$FP8 is not set in the file; taken as unset"},
                                         {"", 2, "$CKPT is not set in the file; taken as unset"},
                                         {"", 2, "this condition is taken as false: the script would end here"}};
  EXPECT_EQ(reading.assumptions, expected);
}

TEST(Reading, TakesTheEnvironmentThatIsGiven) {
  Surroundings around;
  around.given = {{"TP", "4"}};
  EXPECT_EQ(read("torchrun ${TP:-1}\n", "x.sh", around).started.front().words.back(), "4");
}

TEST(ReadScript, ReadsTheLastOfSeveralTrainingsAndSaysSo) {
  const Script script =
      read_script("for T in 2 4; do torchrun t.py --num-layers 2 --hidden-size 8 --lr 1 --t $T; done\n", "x.sh");
  EXPECT_EQ(script.arguments.back().values.front(), "4");
  ASSERT_EQ(script.assumptions.size(), 1U);
  EXPECT_EQ(script.assumptions.front().text, "the script starts 2 trainings; the last is read");
}

TEST(ReadScript, ReadsFilesNextToTheScript) {
  const base::PrivateFolder folder(base::temporary_folder(), "trivium-shell-test-");
  std::filesystem::create_directories(folder.path() / "conf");
  std::ofstream(folder.path() / "env.sh") << "TP=4\n";
  const std::string path = (folder.path() / "conf" / "train.sh").string();
  const Script script = read_script("source ./env.sh\ntorchrun t.py --t $TP\n", path, surroundings_of(path));
  EXPECT_EQ(script.arguments.back().values.front(), "4");
}

TEST(ReadScript, TakesSlurmsCountsFromTheHeader) {
  const Script script = read_script(
      "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gres=gpu:8\ntorchrun --nnodes $SLURM_NNODES t.py\n", "x.sh");
  EXPECT_EQ(script.arguments.front().values.front(), "4");
  EXPECT_EQ(script.batch.at("gres"), "gpu:8");
}

}  // namespace
}  // namespace trivium::planner::launch::shell
