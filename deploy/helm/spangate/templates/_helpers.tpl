{{- define "spangate.name" -}}
{{- if contains "spangate" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-spangate" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "spangate.selector" -}}
app.kubernetes.io/name: spangate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "spangate.secret" -}}
{{ .Values.secret.name | default (include "spangate.name" .) }}
{{- end }}

{{- define "spangate.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "spangate.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- /* gateway.yaml: the values, and what belongs to the paths and ports of the pod. */ -}}
{{- define "spangate.config" -}}
{{- if not .Values.config.replicas }}
{{- fail "config.replicas is missing: name your inference servers, such as --values deploy/helm/examples/minimal.yaml, or --set 'config.replicas[0].name=vllm,config.replicas[0].url=http://vllm:8000'" }}
{{- end }}
{{- $config := deepCopy .Values.config }}
{{- $gateway := dict "listen" "0.0.0.0:8080" "admin_listen" "0.0.0.0:9090" }}
{{- if .Values.tls.secretName }}
{{- $_ := set $gateway "tls" (dict "cert" "/etc/spangate-tls/tls.crt" "key" "/etc/spangate-tls/tls.key") }}
{{- end }}
{{- if .Values.adminTls.secretName }}
{{- $_ := set $gateway "admin_tls" (dict "cert" "/etc/spangate-admin-tls/tls.crt" "key" "/etc/spangate-admin-tls/tls.key") }}
{{- end }}
{{- $own := dict "gateway" $gateway "state_dir" "/var/lib/spangate/state" }}
{{- if .Values.clientsFile.secretName }}
{{- $_ := set $own "clients_file" (printf "/etc/spangate-clients/%s" .Values.clientsFile.key) }}
{{- end }}
{{- mergeOverwrite $config $own | toYaml }}
{{- end }}
