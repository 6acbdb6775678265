"""Examining neural network behavior at the classification boundary (Vlaar 2021): people and models on images between
two digits."""
