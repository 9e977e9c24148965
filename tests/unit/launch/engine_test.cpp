#include "good.h"
#include "launch/control_message.h"
#include "launch/engine.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace containerize::launch {
namespace {

TEST(Engine, NamesAreReadAsTheyAreWritten) {
    for (const auto engine : {Engine::automatic, Engine::native, Engine::apptainer, Engine::singularity}) {
        const auto read = test::good(parse_engine(to_text(engine)));
        EXPECT_EQ(read, engine);
    }
    EXPECT_EQ(to_text(Engine::automatic), "auto");
}

TEST(Engine, OtherNamesAreInputErrors) {
    for (const char* name : {"", "Auto", "docker", "apptainer ", "automatic"}) {
        const auto read = parse_engine(name);
        ASSERT_FALSE(read) << name;
        EXPECT_EQ(read.error().fault, Fault::input);
        EXPECT_TRUE(read.error().what.contains("'" + std::string(name) + "'"));
    }
}

TEST(Engine, TheEnvironmentMaySayNothing) {
    unsetenv("CONTAINERIZE_ENGINE");
    EXPECT_EQ(engine_of_environment().value(), Engine::automatic);
    setenv("CONTAINERIZE_ENGINE", "", 1);
    EXPECT_EQ(engine_of_environment().value(), Engine::automatic);
    setenv("CONTAINERIZE_ENGINE", "apptainer", 1);
    EXPECT_EQ(engine_of_environment().value(), Engine::apptainer);
    setenv("CONTAINERIZE_ENGINE", "podman", 1);
    EXPECT_EQ(engine_of_environment().error().where, "CONTAINERIZE_ENGINE");
    unsetenv("CONTAINERIZE_ENGINE");
}

TEST(Engine, AnAnswerTellsWhetherAnotherEngineMayHelp) {
    const Error refused{.what = "no", .why = "policy", .hint = "ask", .fault = Fault::engine};
    const Error broken{.what = "no", .why = "disk"};
    EXPECT_EQ(error_of_answer(answer_for(refused)).fault, Fault::engine);
    EXPECT_EQ(to_string(error_of_answer(answer_for(refused))), to_string(refused));
    EXPECT_EQ(error_of_answer(answer_for(broken)).fault, Fault::failure);
    EXPECT_EQ(to_string(error_of_answer(answer_for(broken))), to_string(broken));
}

} // namespace
} // namespace containerize::launch
