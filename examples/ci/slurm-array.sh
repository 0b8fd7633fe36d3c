#!/bin/sh
# The same on a Slurm cluster with a shared file system:
#   tracefix batch plan traces -o fixed --pieces 400
#   job=$(sbatch --parsable slurm-array.sh)
#   sbatch --dependency=afterany:$job --wrap 'tracefix batch merge fixed -o fixed --force'
# What is missing or failed ends the merge with exit code 1; submit the array again and only
# that is done.
#SBATCH --job-name=traces
#SBATCH --array=0-399%20
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
#SBATCH --time=04:00:00
#SBATCH --requeue
# The piece is SLURM_ARRAY_TASK_ID, which Slurm sets.
exec tracefix batch --manifest fixed/batch-plan.ndjson -o fixed --for-merge --max-memory 1500MiB
