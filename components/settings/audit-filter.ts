/** What an entry must be, each of them exactly; empty for whatever. */
export const AUDIT_FIELDS = ['actor', 'action', 'agent', 'session', 'result', 'credential'] as const;
export type AuditField = (typeof AUDIT_FIELDS)[number];
export type AuditFilter = Record<AuditField, string>;

export function filterIn(params: { get(name: string): string | null }): AuditFilter {
  return Object.fromEntries(AUDIT_FIELDS.map((field) => [field, params.get(field) ?? ''])) as AuditFilter;
}

export function paramsOf(filter: AuditFilter): URLSearchParams {
  return new URLSearchParams(AUDIT_FIELDS.flatMap((field) => (filter[field] === '' ? [] : [[field, filter[field]]])));
}
