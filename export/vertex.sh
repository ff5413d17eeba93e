#!/usr/bin/env bash
# Uploads an export to Vertex AI, deploys it in TensorFlow Serving 2.20, and asks it.
#
#   PROJECT=my-project REGION=europe-west1 BUCKET=my-bucket REPOSITORY=my-images \
#     export/vertex.sh exports/sentiment
#
# Needs gcloud, signed in, and docker; BUCKET and REPOSITORY, one of Artifact Registry, must be there
# in REGION. Vertex takes images from Artifact Registry alone, so TensorFlow Serving's is copied. The
# endpoint costs money until it is deleted: the last lines tell how. REQUEST, a file, replaces the
# text that it is asked; MACHINE, the kind of machine.
set -euo pipefail

folder=${1:?"a model's folder that kbert export wrote, as exports/sentiment"}
: "${PROJECT:?}" "${REGION:?}" "${BUCKET:?}" "${REPOSITORY:?}"
name=$(basename "$folder")
[ -d "$folder" ] || { echo "vertex.sh: $folder is no folder" >&2; exit 2; }
server=tensorflow/serving:2.20.0
image="$REGION-docker.pkg.dev/$PROJECT/$REPOSITORY/$server"
uri="gs://$BUCKET/exports/$name"
at=(--project="$PROJECT" --region="$REGION")

docker pull "$server"
docker tag "$server" "$image"
gcloud auth configure-docker "$REGION-docker.pkg.dev" --quiet
docker push "$image"
gcloud storage rsync --recursive "$folder" "$uri"

# Vertex copies the folder into a bucket of its own, whose name AIP_STORAGE_URI holds; it puts that
# into $(AIP_STORAGE_URI), so the shell must not. The server need not look for new versions there.
# shellcheck disable=SC2016
arguments=(
  --model_name="$name"
  '--model_base_path=$(AIP_STORAGE_URI)'
  --rest_api_port=8080
  --port=8500
  --file_system_poll_wait_seconds=0
)
model=$(gcloud ai models upload "${at[@]}" --display-name="$name" --artifact-uri="$uri" \
  --container-image-uri="$image" \
  --container-command=/usr/bin/tensorflow_model_server \
  --container-args="$(IFS=,; echo "${arguments[*]}")" \
  --container-ports=8080 \
  --container-predict-route="/v1/models/$name:predict" \
  --container-health-route="/v1/models/$name" \
  --format='value(model)')
model=${model##*/}
endpoint=$(gcloud ai endpoints create "${at[@]}" --display-name="$name" --format='value(name)')
endpoint=${endpoint##*/}
gcloud ai endpoints deploy-model "$endpoint" "${at[@]}" --model="$model" --display-name="$name" \
  --deployed-model-id=1 --machine-type="${MACHINE:-n2-standard-4}" --min-replica-count=1 \
  --traffic-split=0=100

# The JSON is that of TensorFlow Serving: for pairs and questions an object a row, by input name.
if [ -z "${REQUEST:-}" ]; then
  REQUEST=$(mktemp)
  trap 'rm -f "$REQUEST"' EXIT
  echo '{"instances": ["a film that grows on you"]}' > "$REQUEST"
fi
gcloud ai endpoints predict "$endpoint" "${at[@]}" --json-request="$REQUEST"

echo "To end it:
  gcloud ai endpoints undeploy-model $endpoint ${at[*]} --deployed-model-id=1
  gcloud ai endpoints delete $endpoint ${at[*]}
  gcloud ai models delete $model ${at[*]}"
