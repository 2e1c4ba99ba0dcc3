import type { Artefact } from './artefacts.ts';

/** How a release was built. Times are RFC 3339. */
export interface Build {
  readonly version: string;
  /** The commit that was built, in full. */
  readonly commit: string;
  /** The version of Node that built it, and is in the executables. */
  readonly nodeVersion: string;
  readonly startedOn: string;
  readonly finishedOn: string;
  /** What built it: the address of a run in CI, or `local`. */
  readonly builder: string;
}

/**
 * States what was built from what: SLSA Provenance v1 in an in-toto Statement v1 (slsa.dev/spec/v1.0/provenance). It is not
 * signed: who publishes signs it, or lets the registry do so.
 */
export function toProvenance(build: Build, artefacts: readonly Artefact[]): object {
  const { version, commit, nodeVersion, startedOn, finishedOn, builder } = build;
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: artefacts.map(({ name, sha256 }) => ({ name, digest: { sha256 } })),
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'urn:spangate:release:v1',
        externalParameters: { version, ref: `refs/tags/v${version}` },
        internalParameters: { node: nodeVersion },
        resolvedDependencies: [
          { uri: `pkg:generic/spangate@${version}`, digest: { gitCommit: commit } },
          { uri: `pkg:npm/node@${nodeVersion}` },
        ],
      },
      runDetails: {
        builder: { id: builder },
        metadata: { invocationId: `v${version}-${commit.slice(0, 12)}`, startedOn, finishedOn },
      },
    },
  };
}
