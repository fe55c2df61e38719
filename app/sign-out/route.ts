import { mountOpen } from '@/app/mount-open';
import { accessPolicy } from '@/lib/access/access-policy';
import { signOut } from '@/lib/access/sign-in';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mountOpen({
  POST: async (request) => signOut(request, accessPolicy(process.env)),
});
