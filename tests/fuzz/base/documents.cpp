// The documents of a registry, or of a file that claims to be an image, that describe an image.
#include "base/challenge.h"
#include "base/image_reference.h"
#include "base/oci.h"
#include "base/sif.h"
#include "harness.h"

using namespace containerize;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    if (const auto document = base::parse_document(text, "manifest"); fuzz::good(document)) {
        [[maybe_unused]] const bool chosen =
            fuzz::good_input(base::choose(document->index, "amd64", "", "index"));
        for (const auto& entry : document->index)
            fuzz::require(base::is_digest(entry.manifest.digest));
        if (document->manifest) fuzz::require(document->manifest->layers.size() <= base::most_layers);
    }
    if (const auto config = base::parse_config(text, "configuration"); fuzz::good(config))
        for (const auto& variable : config->environment)
            fuzz::require(variable.find('=') > 0 && variable.find('\0') == variable.npos);
    for (const auto& variable : base::exported_variables(text))
        fuzz::require(variable.find('=') > 0 && variable.find_first_of({"\n\0", 2}) == variable.npos);
    [[maybe_unused]] const auto challenges = base::parse_challenges(text);
    if (const auto token = base::parse_token(text))
        fuzz::require(token->find_first_of(" \r\n") == token->npos && !token->empty());
    if (const auto reference = base::parse_reference("docker://" + std::string(text));
        fuzz::good_input(reference)) {
        const auto again = base::parse_reference(reference->text);
        fuzz::require(again && again->text == reference->text && again->registry == reference->registry);
    }
    return 0;
}
