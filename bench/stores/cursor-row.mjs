// The row that the limits update: a cursor as a checkpoint writes it.

export const node = "sweep";
export const progressAt = (n) => `{"done":${n},"total":100000,"message":null,"moves":${n},"items":${n},"ms":1250}`;
