import { getParked } from '@/lib/queries/read-routes';
import { mount } from '../../../../mount';

export const { GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE } = mount({ GET: getParked });
