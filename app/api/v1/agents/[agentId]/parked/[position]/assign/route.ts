import { postAssign } from '@/lib/commands/settle-parked';
import { mount } from '../../../../../../mount';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ POST: postAssign });
