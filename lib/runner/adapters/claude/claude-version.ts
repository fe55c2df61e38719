import { truncateText } from '@interlude/protocol/text';

const MAX_VERSION = 64;

/**
 * `Claude Code` with its version, which comes in its `init` message (`claude_code_version`) and in the lines of its
 * transcripts (`version`).
 * @returns null if it is not a version
 */
export function claudeVersion(version: unknown): string | null {
  return typeof version === 'string' && version.trim() !== ''
    ? `Claude Code ${truncateText(version, MAX_VERSION)}`
    : null;
}
