import type { CredentialSummary } from '@interlude/protocol/access';
import { EVERYTHING } from '@interlude/protocol/scope';

/** Creation time of test credentials: epoch milliseconds. */
const NOW = Date.UTC(2026, 0, 1);

/** A viewer's token that does not expire. */
export function aCredential(fields: Partial<CredentialSummary> = {}): CredentialSummary {
  return {
    id: 'wall',
    kind: 'token',
    name: 'The wall',
    role: 'viewer',
    scope: EVERYTHING,
    parentOrigin: null,
    redacts: false,
    memberId: null,
    parentId: null,
    createdAt: NOW,
    lastUsedAt: NOW,
    expiresAt: null,
    idleUntil: null,
    revokedAt: null,
    ...fields,
  };
}
