// A YAML parser must never make more nodes than were predicted from the text.
#include "harness.h"
#include "util/yaml_size.h"

#include <sstream>
#include <string>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

using namespace containerize;

namespace {

class NodeCounter : public YAML::EventHandler {
public:
    [[nodiscard]] std::size_t nodes() const { return nodes_; }

private:
    void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override { ++nodes_; }
    void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override { ++nodes_; }
    void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  const std::string& /*value*/) override {
        ++nodes_;
    }
    void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                         YAML::EmitterStyle::value /*style*/) override {
        ++nodes_;
    }
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                    YAML::EmitterStyle::value /*style*/) override {
        ++nodes_;
    }
    void OnMapEnd() override {}

    std::size_t nodes_ = 0;
};

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    NodeCounter counter;
    try {
        std::istringstream stream{std::string(text)};
        YAML::Parser(stream).HandleNextDocument(counter);
    } catch (const YAML::Exception&) { // the nodes before the error count
    }
    fuzz::require(counter.nodes() <= most_yaml_nodes(text));
    return 0;
}
