{{- define "ensue.name" -}}
{{- .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "ensue.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ensue.peersname" -}}
{{- printf "%s-peers" (include "ensue.fullname" .) -}}
{{- end -}}

{{- define "ensue.selector" -}}
app.kubernetes.io/name: {{ include "ensue.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ensue.labels" -}}
{{ include "ensue.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
ensue/datacenter: {{ .Values.datacenter }}
{{- end -}}

{{- define "ensue.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "ensue.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "ensue.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "ensue.authSecret" -}}
{{- .Values.auth.existingSecret | default (printf "%s-auth" (include "ensue.fullname" .)) -}}
{{- end -}}

{{- define "ensue.clusterSecret" -}}
{{- .Values.clusterSecret.existingSecret | default (printf "%s-cluster-secret" (include "ensue.fullname" .)) -}}
{{- end -}}

{{- define "ensue.hasClusterSecret" -}}
{{- if or .Values.clusterSecret.existingSecret .Values.clusterSecret.content -}}yes{{- end -}}
{{- end -}}

{{- define "ensue.tlsSecret" -}}
{{- .Values.tls.existingSecret | default (printf "%s-tls" (include "ensue.fullname" .)) -}}
{{- end -}}

{{- define "ensue.hasPlaintext" -}}
{{- if or (not .Values.tls.enabled) .Values.tls.plaintextPort -}}yes{{- end -}}
{{- end -}}

{{/* The own entry of `cluster.datacenters`, as JSON. */}}
{{- define "ensue.own" -}}
{{- $own := dict -}}
{{- $names := list -}}
{{- range .Values.cluster.datacenters -}}
{{- if has .name $names -}}{{- fail (printf "cluster.datacenters: %s is there twice" .name) -}}{{- end -}}
{{- $names = append $names .name -}}
{{- if eq .name $.Values.datacenter -}}{{- $own = . -}}{{- end -}}
{{- end -}}
{{- if not $own -}}
{{- fail (printf "datacenter: %s is none of cluster.datacenters (%s)" .Values.datacenter (join ", " $names)) -}}
{{- end -}}
{{- $nodes := int ($own.nodes | default 1) -}}
{{- $cores := int ($own.cores | default 1) -}}
{{- $port := int ($own.port | default 16379) -}}
{{- $replicas := int ($own.replicas | default .Values.cluster.replicas) -}}
{{- toJson (dict "name" $own.name "nodes" $nodes "cores" $cores "port" $port "replicas" $replicas) -}}
{{- end -}}

{{/* The line `replicas`: that of the cluster, and of datacenters that have others. */}}
{{- define "ensue.replicas" -}}
replicas {{ .Values.cluster.replicas }}
{{- range .Values.cluster.datacenters -}}
{{- if and .replicas (ne (int .replicas) (int $.Values.cluster.replicas)) }} {{ .name }}:{{ .replicas }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* How many pods the replicas of a partition can do without. */}}
{{- define "ensue.spare" -}}
{{- div (sub (include "ensue.own" . | fromJson).replicas 1) 2 -}}
{{- end -}}

{{/* The `node` lines of all datacenters. */}}
{{- define "ensue.nodes" -}}
{{- range $datacenter := .Values.cluster.datacenters }}
{{- $nodes := int ($datacenter.nodes | default 1) }}
{{- if and $datacenter.hosts (ne (len $datacenter.hosts) $nodes) }}
{{- fail (printf "cluster.datacenters: %s has %d nodes and %d hosts" $datacenter.name $nodes (len $datacenter.hosts)) }}
{{- end }}
{{- range $index := until $nodes }}
{{- $host := "" }}
{{- if $datacenter.hosts }}
{{- $host = index $datacenter.hosts $index }}
{{- else if $datacenter.host }}
{{- if and (gt $nodes 1) (not (contains "%d" $datacenter.host)) }}
{{- fail (printf "cluster.datacenters: %s has several nodes, so its host needs a %%d" $datacenter.name) }}
{{- end }}
{{- $host = $datacenter.host | replace "%d" (toString $index) }}
{{- else if eq $datacenter.name $.Values.datacenter }}
{{- $host = printf "%s-%d.%s.%s.svc.%s" (include "ensue.fullname" $) $index (include "ensue.peersname" $) $.Release.Namespace $.Values.clusterDomain }}
{{- else }}
{{- fail (printf "cluster.datacenters: %s is another datacenter and needs hosts or host" $datacenter.name) }}
{{- end }}
{{- $name := $host }}
{{- if and (contains ":" $host) (not (hasPrefix "[" $host)) }}{{- $name = printf "[%s]" $host }}{{- end }}
node {{ $datacenter.name }} {{ $name }}:{{ $datacenter.port | default 16379 }} cores {{ $datacenter.cores | default 1 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Values that would make pods which do not do what they seem to. */}}
{{- define "ensue.check" -}}
{{- $nodes := 0 -}}
{{- range .Values.cluster.datacenters -}}{{- $nodes = add $nodes (int (.nodes | default 1)) -}}{{- end -}}
{{- $hasPeers := gt (int $nodes) 1 -}}
{{- $certificates := and .Values.tls.enabled .Values.tls.cluster -}}
{{- if and $hasPeers (not (include "ensue.hasClusterSecret" .)) (not $certificates) -}}
{{- fail "several nodes need clusterSecret (existingSecret or content), or tls.enabled with tls.cluster: without them no link comes up" -}}
{{- end -}}
{{- range .Values.cluster.datacenters -}}
{{- $replicas := int (.replicas | default $.Values.cluster.replicas) -}}
{{- if lt (int (.nodes | default 1)) $replicas -}}
{{- $nodes := int (.nodes | default 1) -}}
{{- fail (printf "cluster.datacenters: %s has %d nodes, too few for %d replicas" .name $nodes $replicas) -}}
{{- end -}}
{{- end -}}
{{- $spare := int (include "ensue.spare" .) -}}
{{- $away := .Values.podDisruptionBudget.maxUnavailable -}}
{{- if and .Values.podDisruptionBudget.enabled (gt $spare 0) (not (kindIs "string" $away)) (gt (int $away) $spare) -}}
{{- $message := "podDisruptionBudget.maxUnavailable: replicas can do without %d pod(s), and not without %d" -}}
{{- fail (printf $message $spare (int $away)) -}}
{{- end -}}
{{- if and .Values.auth.enabled (not .Values.auth.existingSecret) (not .Values.auth.password) -}}
{{- fail "auth.enabled needs auth.existingSecret or auth.password; auth.enabled=false serves everybody who reaches the port" -}}
{{- end -}}
{{- if and .Values.tls.enabled (not .Values.tls.existingSecret) (not .Values.tls.certManager.issuerRef.name) -}}
{{- fail "tls.enabled needs tls.existingSecret or tls.certManager.issuerRef.name" -}}
{{- end -}}
{{- end -}}
