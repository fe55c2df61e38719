import { mountOpen } from '@/app/mount-open';
import { healthz } from '@/lib/queries/health';

// Asked while the process runs, never answered from the build.
export const dynamic = 'force-dynamic';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mountOpen({ GET: healthz, HEAD: healthz });
