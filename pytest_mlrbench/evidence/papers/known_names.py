"""Data sets, benchmarks and models that everybody knows by name.

One that is not here is known only by the words around it. Each is written as papers have it; after
``=`` stand other names of it, of which code may use any.
"""

from __future__ import annotations

DATASETS = """
MNIST; Fashion-MNIST; EMNIST; KMNIST; QMNIST; CIFAR-10; CIFAR-100; SVHN; STL-10; USPS
ImageNet = ilsvrc; Tiny ImageNet = tinyimagenet, tiny-imagenet; CelebA; LFW; FFHQ; LSUN; VTAB
MS COCO = coco; Visual Genome; Flickr30k; Conceptual Captions = cc3m, cc12m; LAION; VQAv2 = vqa
OK-VQA; TextVQA; GQA; CLEVR; NLVR2; ScienceQA; MMMU; MMBench; Pascal VOC = voc2007, voc2012, voc
Cityscapes; ADE20K; KITTI; nuScenes; Waymo Open; Kinetics; UCF101; HMDB51; Something-Something
ShapeNet; ModelNet; ScanNet; DomainNet; Office-Home; PACS; Waterbirds; CivilComments; Camelyon17
iWildCam; WILDS; CUB-200 = cub; Stanford Cars; Oxford Pets = pets; Oxford Flowers = flowers102
Food-101; Caltech-101; Places365; iNaturalist; CheXpert; MIMIC-CXR; MIMIC-III; MIMIC-IV; ISIC
MedMNIST; BraTS; EuroSAT; UCI Adult = adult; COMPAS; German Credit; Iris; California Housing
Boston Housing; Titanic; LibriSpeech; VoxCeleb; AudioSet; ESC-50; Speech Commands; Common Voice
GLUE; SuperGLUE; SST-2; SST-5; CoLA; MRPC; QQP; STS-B = stsb; MNLI = multinli; SNLI; QNLI; RTE
WNLI; ANLI; BoolQ; PIQA; HellaSwag; WinoGrande; CommonsenseQA; OpenBookQA; SocialIQA; ARC-Challenge
= arcchallenge, ai2arc; ARC-Easy = arceasy, ai2arc; MMLU; MMLU-Pro; BIG-bench = bigbench, bbh
GPQA; TruthfulQA; HaluEval; FEVER; SQuAD; Natural Questions = nq, naturalquestions; TriviaQA
HotpotQA; 2WikiMultihopQA; MuSiQue; NarrativeQA; Qasper; QuALITY; LongBench; RULER; PG-19
MS MARCO; BEIR; WebQuestions; StrategyQA; DROP; CoQA; QuAC; GSM8K; MATH-500; MathQA; SVAMP; AQuA
ProofNet; miniF2F; CoqGym; LeanDojo; PutnamBench; ProofWiki; HumanEval; MBPP; APPS; CodeContests
LiveCodeBench; BigCodeBench; DS-1000; SWE-bench; CodeSearchNet; CodeXGLUE; CrossCodeEval; Defects4J
RepoBench; The Stack; The Pile; OpenWebText; RedPajama; SlimPajama; WikiText-2; WikiText-103
Penn Treebank = ptb; BookCorpus; enwik8; text8; CNN/DailyMail = cnndm, cnndailymail; XSum; SAMSum
arXiv Summarization; PubMedQA; MedQA; BioASQ; IMDB; Yelp; AG News; DBpedia; 20 Newsgroups
= 20news, 20ng; TREC; Reuters; Amazon Reviews = amazon; CoNLL-2003 = conll; OntoNotes; WMT14
WMT16; FLORES; XNLI; XTREME; CrowS-Pairs; StereoSet; BBQ; BOLD; RealToxicityPrompts; ToxiGen
AdvBench; HarmBench; Anthropic HH = hhrlhf; UltraFeedback; Alpaca; AlpacaEval; MT-Bench; Dolly
OpenAssistant = oasst; ShareGPT; Chatbot Arena; TL;DR; MovieLens; Netflix Prize; Last.fm
Amazon Books; Gowalla; Criteo; Cora; CiteSeer; PubMed; ogbn-arxiv; ogbn-products; OGB; ZINC; QM9
MoleculeNet; Tox21; BACE; PROTEINS; MUTAG; PCQM4M; Open Catalyst; Materials Project; CATH
ProteinGym; CASP; PDBbind; AlphaFold DB; Long Range Arena; PathFinder; ETTh1 = ett; ETTm1 = ett
UCR; PEMS; CartPole; MountainCar; LunarLander; Pendulum; Atari; ALE; MuJoCo; HalfCheetah; Hopper
Walker2d; D4RL; Meta-World; Procgen; MiniGrid; BabyAI; DeepMind Control = dmcontrol
RLBench; Habitat; CARLA; StarCraft; SMAC; Overcooked; NetHack; Minecraft; Crafter; ALFWorld; WebShop
WebArena; Mind2Web; GAIA; AgentBench; ToolBench; FEMNIST; Shakespeare; LEAF; Burgers; ERA5
WeatherBench; PDEBench; CAMELS
"""

MODELS = """
ResNet; ResNet-18; ResNet-34; ResNet-50; ResNet-101; ResNet-152; VGG; VGG-16; AlexNet; LeNet
DenseNet; EfficientNet; MobileNet; Inception; ConvNeXt; WideResNet; ViT; DeiT; Swin; CLIP; BLIP
BLIP-2; LLaVA; Flamingo; DINO; DINOv2; SimCLR; MoCo; BYOL; Stable Diffusion; U-Net; BERT
DistilBERT; RoBERTa; ALBERT; DeBERTa; ELECTRA; XLNet; CodeBERT; GraphCodeBERT; UniXcoder; SciBERT
BioBERT; Sentence-BERT = sbert, sentencetransformers, minilm; MiniLM; T5; Flan-T5; BART; PEGASUS
CodeT5; GPT-2; GPT-Neo; GPT-J; GPT-3; GPT-3.5; GPT-4; GPT-4o; ChatGPT = gpt35, gpt4; Codex; OPT
BLOOM; Pythia; LLaMA; LLaMA-2; LLaMA-3; Mistral; Mistral-7B; Mixtral
Falcon; Qwen; Qwen2; Qwen2.5; Gemma; Gemini; PaLM; Claude; Phi-2; Phi-3; DeepSeek
DeepSeek-Coder; StarCoder; CodeLlama; CodeGen; Vicuna; Mamba; RWKV; Longformer
BigBird; Performer; Reformer; Whisper; wav2vec; HuBERT; AlphaFold
ESM-2; ProtBERT; GCN; GAT; GraphSAGE; SchNet
"""


def _read(text: str) -> dict[str, tuple[str, ...]]:
    listed = text.strip().replace("\n=", " =").replace("\n", "; ").replace(" ;", ";")
    names: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (part.strip() for part in listed.split("; "))):
        name, _, others = part.partition("=")
        names[name.strip()] = tuple(other.strip() for other in others.split(",") if other.strip())
    return names


#: Name → other names.
KNOWN = _read(DATASETS) | _read(MODELS)
