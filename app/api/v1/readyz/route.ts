import { mountOpen } from '@/app/mount-open';
import { serverContext } from '@/lib/access/server-context';
import { readyz } from '@/lib/queries/health';

// Asked while the process runs, never answered from the build.
export const dynamic = 'force-dynamic';

const ready = () => readyz(serverContext);

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mountOpen({ GET: ready, HEAD: ready });
