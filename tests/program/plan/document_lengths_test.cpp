#include "program/plan/document_lengths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "base/error.h"
#include "base/files.h"
#include "program/plan/job_json.h"

namespace trivium::program {
namespace {

class DocumentLengths : public ::testing::Test {
 protected:
  ~DocumentLengths() override { std::remove(path_.c_str()); }

  // Tests run side by side.
  const std::string path_ = ::testing::TempDir() + "document_lengths_" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
                            std::to_string(getpid()) + ".txt";

  Documents of(const std::string& text) const {
    base::write_file_atomically(path_, text);
    return read_document_lengths(path_);
  }
  std::string error_of(const std::string& text) const {
    try {
      of(text);
    } catch (const base::Failure& failure) {
      return failure.error().message;
    }
    return "";
  }
};

TEST_F(DocumentLengths, AreCountedFromLinesAndFromArrays) {
  const Documents expected{{7, 128}, {1, 3}};
  EXPECT_EQ(of("128\n7\n128\n128\n"), expected);
  EXPECT_EQ(of("[128, 7,128,\n 128]"), expected);
}

// 2,000 lengths are a thousand pairs: 1 and 2, of one each, are 1.5, to the nearest 2 twice.
TEST_F(DocumentLengths, OfManyDifferentOnesNeighboursBecomeOne) {
  std::string text;
  for (int length = 1; length <= 2000; ++length) text += std::to_string(length) + "\n";
  const Documents documents = of(text);
  ASSERT_EQ(documents.lengths.size(), 1000U);
  EXPECT_EQ(documents.lengths.front(), 2);
  EXPECT_EQ(documents.weights.front(), 2);
  EXPECT_EQ(documents.lengths.back(), 2000);
}

// 2^26 and a quarter of it keep their ratio; one in 2^26 is rounded up.
TEST_F(DocumentLengths, OfTooManyDocumentsAllWeightsAreScaled) {
  const std::int64_t many = std::int64_t{1} << 26, most = std::int64_t{1} << 24;
  EXPECT_EQ(documents_of({{7, many}, {128, many / 4}, {4096, 1}}), (Documents{{7, 128, 4096}, {most, most / 4, 1}}));
  EXPECT_EQ(documents_of({{7, most}, {128, 3}}), (Documents{{7, 128}, {most, 3}}));
}

TEST_F(DocumentLengths, RefuseWhatIsNoLength) {
  EXPECT_EQ(error_of("128\nten\n"),
            path_ + ": \"ten\" is no length of a document; lengths are whole tokens from 1 to 16777216");
  EXPECT_EQ(error_of("0"), path_ + ": \"0\" is no length of a document; lengths are whole tokens from 1 to 16777216");
  EXPECT_EQ(error_of(" \n"), path_ + ": has no lengths of documents");
}

TEST_F(DocumentLengths, AFileOrNewLengthsReplaceTheWeightsBefore) {
  Plan plan;
  Training training;
  of("5 5 9");
  set_field(plan, training, "document_lengths", path_);
  EXPECT_EQ(training.documents, (Documents{{5, 9}, {2, 1}}));
  set_field(plan, training, "document_lengths", "256");
  EXPECT_EQ(training.documents, (Documents{{256}, {}}));
}

}  // namespace
}  // namespace trivium::program
