// Converts days in the local time zone to times of the server and back.

const two = (number) => String(number).padStart(2, "0");

export function dayOf(at) {
  const day = new Date(at);
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

function moment(day, clock) {
  const at = new Date(`${day}T${clock}`);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}

/** Null if it is not a day. */
export const startOf = (day) => moment(day, "00:00:00");
export const endOf = (day) => moment(day, "23:59:59.999");
