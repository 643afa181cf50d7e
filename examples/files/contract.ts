/**
 * What triggers and workers agree on: names and types. A process that starts or checks runs needs these, and no
 * workflow code.
 */

export interface FileRef {
  readonly bucket: string;
  readonly key: string;
}

export interface ProcessedFile {
  readonly processedKey: string;
  readonly sizeBytes: number;
}

export interface Approval {
  readonly by: string;
}

/** The versions of one workflow, as names: to Pawl they are two workflows. */
export const processFileNames = { stable: "process_file", canary: "process_file_v2" } as const;
