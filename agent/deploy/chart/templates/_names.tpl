{{- define "opscope.name" -}}
{{- if contains "opscope" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-opscope" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "opscope.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "opscope.labels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* What tells the agents' and the webhook's pods from others. */}}
{{- define "opscope.agent" -}}
app.kubernetes.io/name: opscope-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "opscope.webhook" -}}
app.kubernetes.io/name: opscope-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
