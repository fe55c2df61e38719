import { isDeepStrictEqual } from 'node:util';
import type { ClaudeSdk, QueryOptions } from '../sources/claude/claude-sdk';

/** Why an answer that changes what was asked for is refused. */
export const CHANGED = 'The demo runs only what it asked for.';

/**
 * An agent whose tools run exactly as it asked, or not at all. An answer may otherwise replace a tool's input, and a
 * demo that many people can reach must not be a shell for them.
 */
export function onlyItsOwn({ query }: ClaudeSdk): ClaudeSdk {
  return { query: ({ prompt, options }) => query({ prompt, options: { ...options, ...guarded(options) } }) };
}

function guarded({ canUseTool }: QueryOptions): Pick<QueryOptions, 'canUseTool'> {
  if (canUseTool === undefined) return {};
  return {
    async canUseTool(tool, input, context) {
      const verdict = await canUseTool(tool, input, context);
      // The answer to a question stands in its input.
      if (verdict.behavior === 'deny' || tool === 'AskUserQuestion') return verdict;
      return isDeepStrictEqual(verdict.updatedInput, input) ? verdict : { behavior: 'deny', message: CHANGED };
    },
  };
}
