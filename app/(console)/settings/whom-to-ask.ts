import { readAdminNames } from '@/lib/server/access/manage-members';
import { readForPage } from '../read-in-turn';

/** The admins, for a sentence that ends with them. */
export async function whomToAsk(): Promise<string> {
  const names = await readForPage(readAdminNames);
  if (names.length === 0) return 'whoever runs this server';
  return `an admin: ${new Intl.ListFormat('en', { type: 'disjunction' }).format(names)}`;
}
