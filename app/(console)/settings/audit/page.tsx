import type { Metadata } from 'next';
import { readInTurn, readPrincipal } from '@/app/(console)/read-in-turn';
import { filterIn, paramsOf } from '@/components/settings/audit-filter';
import { AuditPage } from '@/components/settings/audit-page';
import { readAudit, readAuditActions } from '@/lib/server/access/audit-log';
import { may } from '@/lib/server/access/principal';
import { ForAdmins } from '../for-admins';

export const metadata: Metadata = { title: 'Audit' };

const IN_PAGE = 50;

export default async function AuditSettingsPage(props: {
  searchParams: Promise<Record<string, string | string[] | undefined>>;
}) {
  const principal = await readPrincipal();
  if (!may(principal, 'administer')) return <ForAdmins />;
  const params = await props.searchParams;
  const filter = filterIn({ get: (name) => [params[name]].flat()[0] ?? null });
  const wanted = Object.fromEntries(Object.entries(filter).map(([name, value]) => [name, value || null]));
  const query = { ...NOTHING, ...wanted, before: null, limit: IN_PAGE };
  const [page, actions] = await readInTurn((scope) => Promise.all([readAudit(scope, query), readAuditActions(scope)]));
  return <AuditPage first={{ query: paramsOf(filter).toString(), page }} actions={actions} />;
}

const NOTHING = { actor: null, action: null, agent: null, session: null, credential: null, result: null };
