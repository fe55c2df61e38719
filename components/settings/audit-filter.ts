/** Filter fields. Values match exactly; empty matches everything. */
const AUDIT_FIELDS = ['actor', 'action', 'agent', 'session', 'result', 'credential'] as const;
export type AuditField = (typeof AUDIT_FIELDS)[number];
export type AuditFilter = Record<AuditField, string>;

export function filterIn(params: { get(name: string): string | null }): AuditFilter {
  return Object.fromEntries(AUDIT_FIELDS.map((field) => [field, params.get(field) ?? ''])) as AuditFilter;
}

export function paramsOf(filter: AuditFilter): URLSearchParams {
  return new URLSearchParams(AUDIT_FIELDS.flatMap((field) => (filter[field] === '' ? [] : [[field, filter[field]]])));
}

/** Words for results: `done`, or the code of a refusal. */
const RESULT_WORD: Record<string, string> = {
  done: 'done',
  forbidden: 'refused: not allowed for this role',
  not_found: 'refused: not found',
  conflict: 'refused: conflict',
  cross_origin: 'refused: from another site',
  too_many_requests: 'refused: too many requests',
  unsupported_encoding: 'refused: unsupported encoding',
};

export const RESULTS = Object.keys(RESULT_WORD);

export function resultWord(result: string): string {
  return RESULT_WORD[result] ?? `refused: ${result.replaceAll('_', ' ')}`;
}
