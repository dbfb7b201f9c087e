#include "cli/render/profile_purposes.h"

#include <map>

namespace trivium::cli {

std::string_view purpose_of(std::string_view profile) {
  static const std::map<std::string_view, std::string_view> kPurposes{
      {"a100-pcie-40gb", "servers with A100 PCIe cards"},
      {"a100-pcie-80gb", "servers with A100 PCIe cards"},
      {"aws-p3-16xlarge-v100-16gb", "AWS p3.16xlarge; fitted to Alpa's runs"},
      {"azure-ndm-a100-80gb", "Azure NDm A100 v4; fitted to DeepSpeed's runs"},
      {"b200-4x", "nodes of four B200"},
      {"b200-hgx", "HGX B200 servers of any vendor"},
      {"dgx-a100-40gb", "DGX A100 with 40 GB; usual choice for such A100"},
      {"dgx-a100-80gb", "DGX A100; usual choice for A100"},
      {"dgx-b200", "DGX B200; usual choice for B200"},
      {"dgx-b300", "DGX B300; usual choice for B300"},
      {"dgx-h100", "DGX H100; usual choice for H100"},
      {"dgx-h100-80gb", "the same as dgx-h100, under its older name"},
      {"dgx1-v100-16gb", "DGX-1 with 16 GB V100"},
      {"dgx1-v100-32gb", "DGX-1 with 32 GB V100"},
      {"dgx2-v100-32gb", "DGX-2; fitted to Megatron-LM's runs of 2020"},
      {"eos-dgx-h100", "NVIDIA's Eos, DGX H100"},
      {"gb200-nvl72", "GB200 NVL72 racks; usual choice for GB200"},
      {"gb300-nvl72", "GB300 NVL72 racks; usual choice for GB300"},
      {"gcp-a3-h100", "Google Cloud A3 High"},
      {"generic-cpu", "a common machine without GPUs"},
      {"grand-teton-h100-96gb-500w", "Meta's Grand Teton at 500 W; fitted to torchtitan's runs"},
      {"h100-8x", "eight H100 in a server of any vendor"},
      {"h100-pcie-80gb", "servers with H100 PCIe cards"},
      {"h200", "eight H200 in a server of any vendor; usual choice for H200"},
      {"h200-hgx", "HGX H200 servers of any vendor"},
      {"h200-trivium", "one H200, fitted to Trivium's own runs"},
      {"h800-hgx", "HGX H800, as DeepSeek trained on"},
      {"hf-h100-80gb-efa", "AWS p5 with EFA; fitted to the Ultra-Scale Playbook"},
      {"ibm-h100-800gbps", "IBM Cloud, H100 with 800 Gb/s a node"},
      {"internevo-a100-80gb-4x100g-roce", "A100 with 4 x 100 Gb/s RoCE; fitted to InternEvo's runs"},
      {"jean-zay-a100-80gb", "Jean Zay; fitted to BLOOM's runs"},
      {"jean-zay-v100-16gb", "Jean Zay; fitted to BigScience's runs"},
      {"jean-zay-v100-32gb", "Jean Zay; fitted to BigScience's runs"},
      {"kempner-h200-4x", "Kempner's nodes of four H200"},
      {"l40s", "servers with L40S cards"},
      {"mlperf-b200", "B200 as tuned for MLPerf"},
      {"mlperf-b300", "B300 as tuned for MLPerf"},
      {"mlperf-gb200-nvl72", "GB200 NVL72 as tuned for MLPerf"},
      {"mlperf-gb300-nvl72", "GB300 NVL72 as tuned for MLPerf"},
      {"mlperf-h100", "H100 as tuned for MLPerf"},
      {"mlperf-h200", "H200 as tuned for MLPerf"},
      {"mosaic-a100-40gb", "Mosaic's cloud; fitted to LLM Foundry's runs"},
      {"mosaic-a100-80gb", "Mosaic's cloud; fitted to LLM Foundry's runs"},
      {"mosaic-h100-80gb", "Mosaic's cloud; fitted to LLM Foundry's runs"},
      {"rtx-4090", "workstations with RTX 4090"},
      {"selene-dgx-a100-80gb", "NVIDIA's Selene; fitted to Megatron-LM's papers"},
      {"simumax-b200-8x", "eight B200; fitted to SimuMax's runs"},
      {"vtrain-a100-80gb-800gbps", "A100 with 800 Gb/s a node; fitted to vTrain's runs"},
      {"vtrain-hgx-a100", "HGX A100; fitted to vTrain's runs"},
      {"whitefiber-h200", "WhiteFiber's H200 cloud"}};
  const auto found = kPurposes.find(profile);
  return found == kPurposes.end() ? std::string_view() : found->second;
}

}  // namespace trivium::cli
