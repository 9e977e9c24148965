#include "util/redact.h"

#include <array>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace containerize {

namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

TEST(Redact, FindsSecretsByTheirPlace) {
    const std::pair<const char*, const char*> cases[] = {
        // Logins in URLs of all schemes:
        {"https://bob:hunter22@host/x", "https://****@host/x"},
        {"see https://tok3n@host/x.", "see https://****@host/x."},
        {"git+https://bob:pw@host/r.git@v1#egg=r", "git+https://****@host/r.git@v1#egg=r"},
        {"-ihttps://bob:pw@host/simple", "-ihttps://****@host/simple"},
        {"ftp://bob:pw@host", "ftp://****@host"},
        {"postgres://bob:pw@host:5432/db", "postgres://****@host:5432/db"},
        {"https://bob:p@ss@host/x", "https://****@host/x"},
        {"https://bob:p/ss@host/x", "https://****@host/x"},
        {"https://bob:p@s/s@host/x", "https://****@host/x"},
        {"https://bob:p%40ss@[::1]:80/x", "https://****@[::1]:80/x"},
        {"'https://bob:pw@host/x' \"https://bob:pw@host\"", "'https://****@host/x' \"https://****@host\""},
        {"https://a:b@h/\\nhttps://c:d@i/", "https://****@h/\\nhttps://****@i/"},
        {"fatal: cannot reach 'https://bob:pw@host/': no", "fatal: cannot reach 'https://****@host/': no"},
        // A password may begin like a variable:
        {"https://bob:$UMMERPW2024@host/simple", "https://****@host/simple"},
        {"https://bob:${TOKEN}$UMMER@host/simple", "https://****@host/simple"},
        // A user of ssh is no secret, a password is:
        {"git+ssh://git@host/r", "git+ssh://git@host/r"},
        {"ssh://git:pw@host/r", "ssh://git:****@host/r"},
        // Tokens of conda's channels:
        {"https://host/t/ab-12/main::numpy", "https://host/t/****/main::numpy"},
        {"https://bob:pw@host/x/t/ab_12/main", "https://****@host/x/t/****/main"},
        {"https://host/t/a.b=c~d/main", "https://host/t/****/main"},
        // Queries and fragments:
        {"https://h/a.whl?sig=ab%2Fc%3D&se=2026-01-01", "https://h/a.whl?sig=****&se=****"},
        {"https://h/a?X-Amz-Signature=0f0f&v=1#sha256=aa",
         "https://h/a?X-Amz-Signature=****&v=****#sha256=aa"},
        {"https://h/a?access_token=x'", "https://h/a?access_token=****'"},
        {"git+https://h/r?rev=main&tag=v1#0123abc", "git+https://h/r?rev=main&tag=v1#0123abc"},
        {"\"GET /x?token=abc&v=1\" 200", "\"GET /x?token=****&v=1\" 200"},
        {"https://h/a#access_token=xyz&egg=a", "https://h/a#access_token=****&egg=a"},
        // Options:
        {"tool --password hunter22 --user me", "tool --password **** --user me"},
        {"tool --password=hunter22 --token 'a b' x", "tool --password=**** --token '****' x"},
        {"tool --password $ecret", "tool --password ****"},
        {"tool --api-key=\"k e y\"", "tool --api-key=\"****\""},
        {"curl -u bob:pw https://h", "curl -u **** https://h"},
        {"pip --trusted-host bob:pw@host:80", "pip --trusted-host ****@host:80"},
        {"pip --proxy bob:pw@host:80", "pip --proxy ****@host:80"},
        // Variables and headers:
        {"UV_INDEX_MINE_PASSWORD=hunter22", "UV_INDEX_MINE_PASSWORD=****"},
        {"+ export GITHUB_TOKEN=abc", "+ export GITHUB_TOKEN=****"},
        {"API_KEY: abc", "API_KEY: ****"},
        {"{\"token\": \"abc\", \"x\": 1}", "{\"token\": \"****\", \"x\": 1}"},
        {"https_proxy=bob:pw@proxy:3128", "https_proxy=****@proxy:3128"},
        {"Authorization: Bearer abc", "Authorization: Bearer ****"},
        {"authorization: Basic dTpw", "authorization: Basic ****"},
        {"sent Bearer 0123456789012345678901234", "sent Bearer ****"},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(redacted(text), expected);
        EXPECT_EQ(redacted(expected), expected) << "a second time nothing changes";
    }
}

TEST(Redact, LeavesWhatIsNoSecret) {
    for (const char* text : {
             "/etc/passwd: this is not a Python that can be run",
             "numpy>=1.26 --hash=sha256:0123",
             "tokenizers==0.15",
             "token==1.0",
             "TOKENIZERS_PARALLELISM=false",
             "https://host:8443/a/t/",
             "https://host/pkgs/t/libfoo-1.0.conda",
             "file:///home/t/me/channel?x=y",
             "https://${USER}:${TOKEN}@host/simple",
             "https://bob:${TOKEN}${MORE}@host/simple",
             "export TOKEN=$MY_TOKEN",
             "export TOKEN=$(cat file)",
             "--password-file /run/secret --token-file=x",
             "cannot connect to https://host:443: no route",
             "docker://registry:5000/a:1@sha256:00",
             "me@host:path, and the password is wrong",
             "Write it as http://USER:PASSWORD@HOST:PORT in https_proxy.",
             "the token or password in the channel's URL",
             "password: ****",
         })
        EXPECT_EQ(redacted(text), text);
}

TEST(Redact, KnowsTheSecretsOfItsInputs) {
    EXPECT_EQ(redacted("qzx+wvu/9!"), "qzx+wvu/9!");
    remember_secrets_in("--index-url https://bob:qzx%2Bwvu%2F9%21@host/simple\n");
    for (const char* form : {"qzx%2Bwvu%2F9%21", "qzx+wvu/9!", "qzx%2bwvu%2f9%21", "qzx%2Bwvu/9%21",
                             "qzx+wvu%2F9!", "qzx+wvu\\/9!"})
        EXPECT_EQ(redacted(std::string("it said ") + form + ", twice " + form), "it said ****, twice ****");
    EXPECT_EQ(redacted("bob"), "bob") << "who, is no secret where nothing tells that it is a login";
}

TEST(Redact, KnowsSecretsInOtherForms) {
    remember_secret("vu\"tsr'qpo\\n");
    EXPECT_EQ(redacted("{\"a\":\"vu\\\"tsr'qpo\\\\n\"}"), "{\"a\":\"****\"}");
    EXPECT_EQ(redacted("'vu\"tsr'\\''qpo\\n'"), "'****'");
    remember_login("zed", "kjihgfedc");
    EXPECT_EQ(redacted("emVkOmtqaWhnZmVkYw=="), "****");
}

TEST(Redact, QuotesThatDoNotClose) {
    EXPECT_EQ(redacted("--password 'abc\nit's"), "--password '****\nit's");
    EXPECT_EQ(redacted("--password 'abc"), "--password '****");
}

TEST(Redact, TextWithoutEnd) {
    std::string urls;
    for (int i = 0; i < 10'000; ++i)
        urls += "a://b:c@";
    EXPECT_FALSE(redacted(urls).contains("b:c"));
    EXPECT_EQ(redacted(std::string(1'000'000, 'x')).size(), 1'000'000U);
}

TEST(Redact, TakesShortSecretsForWordsOfTheirOwn) {
    remember_secret("wxyz");
    EXPECT_EQ(redacted("wxyz, 'wxyz' and wxyzs"), "****, '****' and wxyzs");
    remember_secret("wx");
    EXPECT_EQ(redacted("wx"), "wx");
    remember_secret("");
    EXPECT_EQ(redacted("a"), "a");
}

TEST(Redact, LongerSecretsComeFirst) {
    remember_secret("mnbvcxzl");
    remember_secret("mnbvcxzlkjhgf");
    EXPECT_EQ(redacted("mnbvcxzlkjhgf mnbvcxzl"), "**** ****");
}

TEST(Redact, CommandLines) {
    EXPECT_EQ(redacted_command({"pip", "install", "--extra-index-url", "https://bob:pw@host/simple", "a b"}),
              "pip install --extra-index-url 'https://****@host/simple' 'a b'");
    EXPECT_EQ(redacted_command({"tool", "--password", "a 'b'", "--password=x y", "-u", "me:pw"}),
              "tool --password **** '--password=**** y' -u '****'");
    EXPECT_EQ(redacted_command({"sh", "-c", "curl https://bob:pw@host"}), "sh -c 'curl https://****@host'");
    EXPECT_EQ(redacted_command({}), "");
    remember_secrets_of(Words{"tool", "--password", "it's plugh1234"});
    EXPECT_EQ(redacted("it's plugh1234!"), "****!");
}

TEST(Redact, Environments) {
    remember_secrets_of(Variables{{"MY_SERVICE_TOKEN", "xyzzy12345"},
                                  {"PIP_INDEX_URL", "https://bob:foobar9876@host"},
                                  {"https_proxy", "bob:proxysecret1@proxy:80"},
                                  {"USE_TOKEN", "true"},
                                  {"TOKEN_OF_ROOT", "/usr/bin"},
                                  {"DB_PASSWORD", "hunt3r2"},
                                  {"API_PASSWORD", "$UPER9SECRET"}});
    EXPECT_EQ(redacted("xyzzy12345 foobar9876 proxysecret1 true /usr/bin"), "**** **** **** true /usr/bin");
    EXPECT_EQ(redacted("it is hunt3r2, not hunt3r22"), "it is ****, not hunt3r22");
    EXPECT_EQ(redacted("it is $UPER9SECRET"), "it is ****") << "nothing is put in a variable's place there";
}

TEST(Redact, SecretsOfSeveralLines) {
    remember_secrets_of(
        Variables{{"DEPLOY_PRIVATE_KEY",
                   "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\r\nhkiG9w0BAQEFAASC\nend\n-----END KEY-----\n"}});
    for (const char* line :
         {"-----BEGIN KEY-----", "MIIEvQIBADANBgkq", "hkiG9w0BAQEFAASC", "-----END KEY-----"})
        EXPECT_EQ(redacted(line), "****");
    EXPECT_EQ(redacted("the end"), "the end");
}

TEST(Redact, SecretsWithinBase64) {
    remember_secret("gnusto-rezrov-1");
    // "gnusto-rezrov-1", "u:gnusto-rezrov-1" and "me:gnusto-rezrov-1\n"
    EXPECT_EQ(redacted("Z251c3RvLXJlenJvdi0x"), "****");
    EXPECT_EQ(redacted("dTpnbnVzdG8tcmV6cm92LTE="), "dTp****E=");
    EXPECT_EQ(redacted("bWU6Z251c3RvLXJlenJvdi0xCg=="), "bWU6****Cg==");
}

TEST(Redact, NamesVariables) {
    remember_variable("FEED", "rezrov/gnusto 9");
    remember_variable("FEED_URL", "https://me:pw@host/yomin-1/simple");
    remember_variable("CUDA", "cu121");
    EXPECT_EQ(redacted("https://h/rezrov/gnusto%209/x"), "https://h/${FEED}/x");
    EXPECT_EQ(redacted("token=rezrov/gnusto 9"), "token=**** 9") << "recognised by position";
    EXPECT_EQ(redacted("https://host/yomin-1/simple/x"), "${FEED_URL}/x");
    EXPECT_EQ(redacted("torch+cu121"), "torch+cu121");
}

TEST(Redact, ValuesOfVariablesStandInOtherTexts) {
    setenv("USER", "johnsmith1", 1);
    setenv("LOGNAME", "jsmith-login", 1);
    setenv("HOME", "/projappl/project_77/johnsmith1", 1);
    remember_variable("PACKAGE", "frobozzlib");
    remember_variable("WHO", "johnsmith1");
    remember_variable("LOGIN", "jsmith-login");
    remember_variable("PROJECT", "project_77");
    remember_variable("PLACE", "/projappl/project_77/johnsmith1");
    EXPECT_EQ(redacted("- frobozzlib=2.1 # https://h/frobozzlib/frobozzlib.whl, file:///p/frobozzlib"),
              "- frobozzlib=2.1 # https://h/${PACKAGE}/${PACKAGE}.whl, file:///p/frobozzlib");
    EXPECT_EQ(redacted("frobozzlib @ git+https://h/frobozzlib"), "frobozzlib @ git+https://h/${PACKAGE}");
    // pip's messages about a server that does not answer.
    EXPECT_EQ(
        redacted(
            "after connection broken by 'NewConnectionError(\"frobozzlib: x\")': /frobozzlib/simple/six/"),
        "after connection broken by 'NewConnectionError(\"frobozzlib: x\")': /${PACKAGE}/simple/six/");
    EXPECT_EQ(redacted("Max retries exceeded with url: /frobozzlib/x (Caused by frobozzlib)"),
              "Max retries exceeded with url: /${PACKAGE}/x (Caused by frobozzlib)");
    EXPECT_EQ(redacted("https://h:443 \"GET /frobozzlib/simple/six/ HTTP/1.1\" 200 frobozzlib"),
              "https://h:443 \"GET /${PACKAGE}/simple/six/ HTTP/1.1\" 200 frobozzlib");
    for (const char* text : {"/scratch/johnsmith1/data", "https://h/johnsmith1/jsmith-login/x.whl",
                             "https://h/project_77/x", "https://h//projappl/project_77/johnsmith1/x"})
        EXPECT_EQ(redacted(text), text);
}

TEST(Redact, AVariableWithATellingNameIsASecretEverywhere) {
    remember_variable("FEED_TOKEN", "zork-feed-77");
    EXPECT_EQ(redacted("GET /zork-feed-77/x of https://h/zork-feed-77/x"),
              "GET /****/x of https://h/${FEED_TOKEN}/x");
    remember_secret("longer-zork-feed-77-secret");
    EXPECT_EQ(redacted("https://h/longer-zork-feed-77-secret/x"), "https://h/****/x");
}

TEST(Redact, Netrc) {
    remember_secrets_of_netrc("machine a login me password netrcpass1\n# password\ndefault\n login password "
                              "password \"netrcpass2\"");
    EXPECT_EQ(redacted("netrcpass1 netrcpass2 machine"), "**** **** machine");
    remember_secrets_of_netrc("machine a login me password $ECRETPASS99");
    EXPECT_EQ(redacted("$ECRETPASS99"), "****");
}

TEST(Redact, CommandLineOfThisProcess) {
    std::array<std::string, 6> words = {"tool", "install", "https://bob:pw@host", "--token", "abc", "--x=1"};
    std::array<char*, 6> argv{};
    for (std::size_t i = 0; i < words.size(); ++i)
        argv[i] = words[i].data();
    hide_secrets_of_process(6, argv.data());
    EXPECT_EQ(words, (std::array<std::string, 6>{"tool", "install", "*******************", "--token", "***",
                                                 "--x=1"}));
}

} // namespace

} // namespace containerize
