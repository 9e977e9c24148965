// Compares how we judge versions with libsolv, and where both differ, with what rattler says.
#include "conda/libsolv.h"
#include "conda/match_spec.h"
#include "conda/version.h"

#include <random>

#include <gtest/gtest.h>

namespace containerize::conda {
namespace {

class Judges : public testing::Test {
protected:
    Judges() {
        pool_setdisttype(pool_, DISTTYPE_CONDA);
        solvable_ = repo_add_solvable(repo_create(pool_, "one"));
        pool_id2solvable(pool_, solvable_)->name = pool_str2id(pool_, "a", 1);
    }
    ~Judges() override { pool_free(pool_); }

    bool libsolv_matches(const std::string& spec, const std::string& version) {
        Solvable* solvable = pool_id2solvable(pool_, solvable_);
        solvable->evr = pool_str2id(pool_, version.c_str(), 1);
        return solvable_conda_matchversion(solvable, spec.c_str()) == 1;
    }
    int libsolv_order(const std::string& one, const std::string& other) {
        const int order = pool_evrcmp_conda(pool_, one.c_str(), other.c_str(), 0);
        return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    static bool matches(const std::string& spec, const std::string& version) {
        const auto parsed = VersionSpec::parse(spec);
        EXPECT_TRUE(parsed) << spec;
        return parsed && parsed->matches(Version::parse(version).value());
    }
    static int order(const std::string& one, const std::string& other) {
        const auto found = Version::parse(one).value() <=> Version::parse(other).value();
        return found < 0 ? -1 : found > 0 ? 1 : 0;
    }

    std::size_t below(std::size_t limit) {
        return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
    }
    std::string one_of(const std::vector<std::string>& texts) { return texts[below(texts.size())]; }

    /// Without local versions and a trailing '_', on which the two are known to differ.
    std::string version() {
        std::string text = one_of({"", "", "", "", "1!"}) + one_of({"0", "1", "1", "2", "3", "10", "2026"});
        for (auto parts = below(4); parts > 0; --parts)
            text += "." + one_of({"0", "1", "2", "4", "10", "26", "0a1", "1rc2", "dev3", "1post1", "0b", "a",
                                  "1_2"});
        return text + one_of({"", "", "", "", "a1", "b2", "rc1", ".dev0", ".post1", "_1", "j"});
    }
    /// Also without a star after a relation or after a letter, where it may continue a word.
    std::string condition() {
        const auto text = version();
        const bool number = std::isdigit(static_cast<unsigned char>(text.back())) != 0;
        switch (below(10)) {
        case 0:
            return text;
        case 1:
            return number ? text + "*" : text;
        case 2:
            return number ? text + ".*" : text;
        case 3:
            return number ? "!=" + text + ".*" : "!=" + text;
        case 4:
            return "~=" + text + ".1";
        case 5:
            return "*";
        default:
            return one_of({"==", "!=", ">=", "<=", ">", "<"}) + text;
        }
    }
    std::string conditions() {
        auto text = condition();
        for (auto more = below(3); more > 0; --more)
            text += one_of({",", "|"}) + condition();
        return text;
    }

private:
    Pool* pool_ = pool_create();
    Id solvable_ = 0;
    std::mt19937 random_{1}; // reproducible
};

TEST_F(Judges, AgreeOnTheOrderOfVersions) {
    for (int i = 0; i < 20'000; ++i) {
        const auto one = version();
        const auto other = version();
        ASSERT_EQ(order(one, other), libsolv_order(one, other)) << one << " " << other;
    }
}

TEST_F(Judges, AgreeOnConditions) {
    int matching = 0;
    for (int i = 0; i < 40'000; ++i) {
        const auto spec = conditions();
        const auto of = version();
        const bool found = matches(spec, of);
        ASSERT_EQ(found, libsolv_matches(spec, of)) << of << " of " << spec;
        matching += found ? 1 : 0;
    }
    EXPECT_GT(matching, 10'000);
    EXPECT_LT(matching, 30'000);
}

struct Disputed {
    const char* version;
    const char* spec;
    bool matches; ///< the answer of conda and rattler 0.28; libsolv gives the opposite one
};

TEST_F(Judges, WhereTheyDifferWeSayWhatCondaSays) {
    for (const auto& [of, spec, expected] : {Disputed{"1.25", "<1.26.*", true},
                                             {"1.26", "<=1.26.*", true},
                                             {"1.26.3", ">1.26.*", true},
                                             {"1.26", "==1.26.*", true},
                                             {"3.0", "<1.*|>2.*", true},
                                             {"1.26.4+cu118", ">=1.26.4", false},
                                             {"1.26.4+cu118", "<1.26.4", true},
                                             {"1.26.4", "<1.26.4+cu118", false},
                                             {"1.26rc1", "1_.*", false},
                                             {"1_", "!=1", true},
                                             {"1_", "<1", true},
                                             {"1_", "==1", false}}) {
        EXPECT_EQ(matches(spec, of), expected) << of << " of " << spec;
        EXPECT_NE(libsolv_matches(spec, of), expected) << of << " of " << spec;
    }
    EXPECT_EQ(order("1.26.4+cu118", "1.26.4"), -1);
    EXPECT_EQ(libsolv_order("1.26.4+cu118", "1.26.4"), 1);
    EXPECT_EQ(order("1.26.4+0", "1.26.4"), 0);
    EXPECT_EQ(order("1_", "1"), -1);
    EXPECT_EQ(order("1_", "1.dev0"), -1);
}

} // namespace
} // namespace containerize::conda
