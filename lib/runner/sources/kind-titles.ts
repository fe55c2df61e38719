/** Display names of the kinds of agents. Imports nothing, so that the command line's overview starts fast. */
const KIND_TITLES = {
  acp: 'ACP agents',
  agentapi: 'AgentAPI',
  agui: 'AG-UI',
  claude: 'Claude Code',
  codex: 'Codex',
  hooks: 'Claude Code in your terminals',
  opencode: 'OpenCode',
} as const;

export type KindName = keyof typeof KIND_TITLES;

/** One line for each kind, for help texts. */
export function listKinds(): string {
  return listRows(KIND_TITLES);
}

/** Names and their meanings as lines of a help text. */
export function listRows(rows: Readonly<Record<string, string>>): string {
  return Object.entries(rows)
    .map(([name, meaning]) => `  ${name.padEnd(15)}${meaning}`)
    .join('\n');
}
