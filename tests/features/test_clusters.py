import pytest

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.features import Clusters, FeatureExtractor


@pytest.fixture
def clusters(tmp_path):
    path = tmp_path / "paths.tsv"
    path.write_text("0010\tthe\t9\n0010\ta b\t1\n11\tLondon\t3\n0111\tlondon\n", encoding="utf-8")
    return Clusters(str(path))


def test_prefixes_of_paths(clusters):
    assert [clusters.attribute("c2")(word) for word in ("the", "a b", "London")] == ["00", "00", "11"]
    assert clusters.attribute("c4")("London") == "11"
    assert clusters.attribute("c20")("the") == "0010"
    assert clusters.attribute("c4")("unknown") == ""


def test_case_of_words(clusters):
    assert clusters.path("London") == "11"
    assert clusters.path("LONDON") == "0111"
    assert clusters.path("THE") == "0010"
    assert Clusters(clusters.paths, lower_case=False).path("THE") == ""


def test_other_names_are_no_prefixes(clusters):
    assert clusters.attribute("chunk") is clusters.attribute("c0") is clusters.attribute("c") is None


def test_several_inventories_have_names(clusters):
    both = {"c": clusters, "web": Clusters({"London": "00", "cat": "1"})}
    corpus = Corpus.from_sentences([{"word": ["London", "cat"], "lemma": ["the", "London"]}])
    features = FeatureExtractor(["c2[0]", "web1[0]", "web1(lemma)[0]"], cutoff=1, clusters=both)
    names = [features.index.names("node")[i] for i in features.fit_encode(corpus).nodes.ids]
    assert names == ["c2[0]=11", "web1[0]=0", "web1[0]=1", "web1(lemma)[0]=0"]


@pytest.mark.parametrize(
    ("key", "message"), [("s", "s4 is the name of a surface attribute"), ("x", "no template uses")]
)
def test_names_of_inventories(clusters, key, message):
    with pytest.raises(InputError, match=message):
        FeatureExtractor(["c2[0]", "s2[0]"], clusters={"c": clusters, key: clusters})


def test_json_round_trip(clusters):
    state = clusters.to_json()
    again = Clusters.from_json(state)
    assert state["words"] == {"0010": ["the", "a b"], "11": ["London"], "0111": ["london"]}
    assert (again.paths, again.lower_case) == (clusters.paths, clusters.lower_case)


@pytest.mark.parametrize("line", ["0010 the 9", "the\t0010\t9", "0010", "0010\tthe\t9\t1", "0010\t \t9"])
def test_bad_lines_are_named(tmp_path, line):
    path = tmp_path / "paths.tsv"
    path.write_text(f"01\ta\t1\n{line}\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"paths\.tsv:2: "):
        Clusters(path)


def test_paths_of_words(tmp_path):
    path = tmp_path / "paths.tsv"
    path.write_text("01\ta\t1\n01\ta\t2\n11\ta\t1\n")
    with pytest.raises(InputError, match=r"paths\.tsv:3: 'a' .*11.*01"):
        Clusters(path)
    path.write_text("\n\n")
    with pytest.raises(InputError, match=r"paths\.tsv: "):
        Clusters(path)
    with pytest.raises(InputError, match="clusters: "):
        Clusters({})


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        Clusters(str(tmp_path / "nowhere"))
