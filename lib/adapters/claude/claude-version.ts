import { cutText } from '@/lib/protocol/cut-text';

const MAX_VERSION = 64;

/**
 * Claude Code by its version, as its `init` message (`claude_code_version`) and the lines of its transcripts (`version`)
 * tell it.
 * @returns null where it is none
 */
export function claudeVersion(version: unknown): string | null {
  return typeof version === 'string' && version.trim() !== '' ? `Claude Code ${cutText(version, MAX_VERSION)}` : null;
}
