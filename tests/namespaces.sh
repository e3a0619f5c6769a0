#!/usr/bin/env bash
# Runs models of two ranks, given as files, in two network namespaces that only a virtual cable joins: what Open MPI does between two
# hosts. Arguments: the program mlc, the folder for the outputs, and the two models with further arguments of `mlc run`.
# Ends with status 77, and says why, where the machine forbids namespaces or has no Open MPI.
set -euo pipefail
mlc=$1
output=$2
shift 2

skip() {
  echo "skipped: $1"
  exit 77
}

mpirun --version 2>/dev/null | grep -q "Open MPI" || skip "Open MPI isn't installed"
command -v ip >/dev/null || skip "there is no program ip"
names=("mlc$$a" "mlc$$b")
folder=$(mktemp -d)
clean() {
  local name
  for name in "${names[@]}"; do
    ip netns delete "$name" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap clean EXIT
for name in "${names[@]}"; do
  ip netns add "$name" 2>"$folder/said" || skip "network namespaces are forbidden here: $(cat "$folder/said")"
done
ip link add "${names[0]}" netns "${names[0]}" type veth peer name "${names[1]}" netns "${names[1]}"
for number in 0 1; do
  ip -n "${names[$number]}" address add "10.77.0.$((number + 1))/24" dev "${names[$number]}"
  ip -n "${names[$number]}" link set "${names[$number]}" up
  ip -n "${names[$number]}" link set lo up
  echo "10.77.0.$((number + 1)) slots=1" >>"$folder/hosts"
done

# In the place of ssh: starts Open MPI's daemon in the namespace of an address, under a host name of its own.
cat >"$folder/agent" <<AGENT
#!/bin/sh
case \$1 in
  10.77.0.1) name=${names[0]} ;;
  *) name=${names[1]} ;;
esac
shift
exec ip netns exec \$name unshare --uts sh -c "hostname \$name; \$*"
AGENT
chmod +x "$folder/agent"
export OMPI_MCA_plm_rsh_agent=$folder/agent
export OMPI_MCA_orte_default_hostfile=$folder/hosts
export OMPI_MCA_btl=tcp,self
export OMPI_MCA_btl_tcp_if_include=10.77.0.0/24
export OMPI_MCA_oob_tcp_if_include=10.77.0.0/24
ip netns exec "${names[0]}" unshare --uts sh -c "hostname ${names[0]}; exec \"\$@\"" sh "$mlc" run "$@" --output-dir "$output"
sent=$(ip -n "${names[0]}" -s -j link show "${names[0]}" | sed 's/.*"tx":{"bytes":\([0-9]*\).*/\1/')
echo "the ranks ran in two network namespaces; the first sent $sent bytes to the other one"
