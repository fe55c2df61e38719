import { readAdminNames } from '@/lib/server/access/manage-members';
import { readForPage } from '../read-in-turn';

/** Shown to non-admins on admin pages. */
export async function ForAdmins() {
  return <p className="max-w-prose text-ink-2">Only admins can see this page. For access, ask {await adminNames()}.</p>;
}

/** Returns the admins' names, worded to end a sentence. */
export async function adminNames(): Promise<string> {
  const names = await readForPage(readAdminNames);
  if (names.length === 0) return 'the operator of this server';
  return `an admin: ${new Intl.ListFormat('en', { type: 'disjunction' }).format(names)}`;
}
